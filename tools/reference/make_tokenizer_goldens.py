"""A small tokenizer of the Gemma kind, trained here, and what HF tokenizers makes of hostile strings.

    python tools/reference/make_tokenizer_goldens.py TEXT tests/text/golden

TEXT is any public-domain text (tinyshakespeare was used); only pieces learnt from it are stored.
"""

import json
import pathlib
import random
import sys

import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, trainers

SEED = 20261201
CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"]

text = pathlib.Path(sys.argv[1]).read_text()[:300_000]
folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=CONTROL + [f"<0x{b:02X}>" for b in range(256)],
                              show_progress=False, max_token_length=12)
tokenizer.train_from_iterator((line + "\n" for line in text.split("\n")), trainer)
# The trainer marks byte pieces as added tokens; in Gemma's file they are ordinary pieces.
data = json.loads(tokenizer.to_str())
data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] in CONTROL]
path = folder / "small_tokenizer.json"
path.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n")
tokenizer = Tokenizer.from_str(path.read_text())

rng = random.Random(SEED)
alphabet = [" ", "  ", "\n", "\n\n", "\t", "\u2581", "the", "The king", "e", "0", "123", "<", ">", "</", "<|turn>", "<turn|>", "<bos>",
            "<0x41>", "<unk>", "\u00e9", "\u4e2d", "\U0001f600", "\u200d", "\0", "\r\n", "\ufffd", "'s", ".", "\u0301", "zq", "\u00a0"]
texts = ["", " ", "Hello world", " leading", "trailing ", "a" * 200, " " * 100, "\n" * 70, "First Citizen:\nBefore we proceed",
         "<|turn>user\nHi<turn|>\n<|turn>model\n", "<|turn", "<<|turn>>", "na\u00efve caf\u00e9 \U0001f469\u200d\U0001f680"]
texts += ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 40))) for _ in range(300)]
with open(folder / "small_vectors.jsonl", "w") as out:
    out.write(json.dumps({"program": f"tokenizers {tokenizers.__version__}", "seed": SEED}) + "\n")
    for item in texts:
        ids = tokenizer.encode(item, add_special_tokens=False).ids
        out.write(json.dumps({"text": item, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                              "decoded_skip": tokenizer.decode(ids, skip_special_tokens=True)}) + "\n")
    for _ in range(100):  # ids that no text gives: broken byte runs
        ids = [rng.choice([rng.randrange(9, 265), rng.randrange(9, 265), rng.randrange(0, tokenizer.get_vocab_size())])
               for _ in range(rng.randint(1, 12))]
        out.write(json.dumps({"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                              "decoded_skip": tokenizer.decode(ids, skip_special_tokens=True)}) + "\n")
