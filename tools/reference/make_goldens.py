"""Makes tests/golden: a tiny random checkpoint and recorded passes of Transformers' DiffusionGemma, in float32.

    python tools/reference/make_goldens.py tests/golden [case ...]

tests/golden/README.md describes the cases and the names of the tensors.
"""

import json
import pathlib
import sys

import numpy
import safetensors
import torch
import transformers
from safetensors.torch import save_file

import tiny_model
from recorder import head, recording, rows

# Two implementations in float32 differ by the order of their sums: a few hundred terms of size 1 give about
# 300 * 2^-24 = 2e-5 relative to the largest value; six layers multiply that by less than ten.
TOLERANCE = {"relative_to_largest": 2e-4, "ids": "equal"}


def write(folder, name, tensors, about, seed, extra=None):
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in tensors.items()}, target / "tensors.safetensors")
    case = {
        "about": about,
        "program": "transformers " + transformers.__version__,
        "torch": torch.__version__,
        "safetensors": safetensors.__version__,
        "command": f"python tools/reference/make_goldens.py tests/golden {name}",
        "checkpoint": "tests/golden/tiny",
        "seed": seed,
        "tolerance": TOLERANCE,
    }
    case.update(extra or {})
    (target / "case.json").write_text(json.dumps(case, indent=2) + "\n")


def ids(seed, count, low=3):
    """Random token ids without the special ones below `low` and without stop ids."""
    generator = numpy.random.default_rng(seed)
    allowed = numpy.array([i for i in range(low, 509) if i not in tiny_model.EOS])
    return torch.from_numpy(generator.choice(allowed, count)).long()


def any_ids(seed, count):
    return torch.from_numpy(numpy.random.default_rng(seed).integers(0, tiny_model.VOCABULARY, count)).long()


def encode(model, prompt, cache=None):
    return model.model.encoder(input_ids=prompt[None], past_key_values=cache)


def case_encode(model, folder, name, seed, count):
    prompt = ids(seed, count)
    out = {"ids": prompt.int()}
    with recording(model, "encoder", out):
        result = encode(model, prompt)
    out["logits"] = rows(head(model, result.last_hidden_state[0, -4:]))
    write(folder, name, out, f"Encoder pass over {count} tokens; logits of the last 4 positions.", seed)


def case_canvas(model, folder, name, seed, count):
    prompt, first, second = ids(seed, count), any_ids(seed + 1, 16), any_ids(seed + 2, 16)
    cache = encode(model, prompt).past_key_values
    out = {"prompt_ids": prompt.int(), "step0.canvas_ids": first.int(), "step1.canvas_ids": second.int()}
    with recording(model, "decoder", out, "step0."):
        logits = model(decoder_input_ids=first[None], past_key_values=cache).logits
    out["step0.logits"] = rows(logits)
    # What the reference carries: the processed logits of the step before, here at temperature 0.6.
    carried = logits / 0.6
    out["step1.self_conditioning_logits"] = rows(carried)
    with recording(model, "decoder", out, "step1."):
        logits = model(
            decoder_input_ids=second[None], past_key_values=cache, self_conditioning_logits=carried
        ).logits
    out["step1.logits"] = rows(logits)
    about = f"Canvas passes after a prompt of {count} tokens: first step, then one with self-conditioning."
    write(folder, name, out, about, seed)


def case_blocks(model, folder, name, seed):
    prompt, canvas = ids(seed, 9), any_ids(seed + 1, 16)
    blocks = [ids(seed + 2 + b, 16) for b in range(3)]
    out = {"prompt_ids": prompt.int(), "canvas_ids": canvas.int(), "block_ids": torch.stack(blocks).int()}
    cache = encode(model, prompt).past_key_values
    for b, block in enumerate(blocks):
        result = encode(model, block, cache)
        out[f"block{b}.encoded"] = rows(result.last_hidden_state)
        with recording(model, "decoder", out, f"block{b}."):
            out[f"block{b}.logits"] = rows(model(decoder_input_ids=canvas[None], past_key_values=cache).logits)
    # Intermediate values are in the other cases; here only what the growing cache changes.
    kept = ("past_keys", "logits", "encoded", "ids", "layer.5.out")
    out = {name: value for name, value in out.items() if name.endswith(kept)}
    about = "The same canvas after 1, 2 and 3 committed blocks of 16 tokens behind a prompt of 9."
    write(folder, name, out, about, seed)


CASES = {
    "encode_short": lambda m, f, n: case_encode(m, f, n, 101, 9),
    "encode_long": lambda m, f, n: case_encode(m, f, n, 102, 40),
    "canvas_short": lambda m, f, n: case_canvas(m, f, n, 201, 9),
    "canvas_long": lambda m, f, n: case_canvas(m, f, n, 211, 40),
    "canvas_blocks": lambda m, f, n: case_blocks(m, f, n, 301),
}


@torch.no_grad()
def main():
    folder, chosen = pathlib.Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    model = tiny_model.make_model()
    if not chosen:
        tiny_model.save(model, folder / "tiny")
    for name in chosen or CASES:
        CASES[name](model, folder, name)
        print(name, (folder / name / "tensors.safetensors").stat().st_size)


if __name__ == "__main__":
    main()
