"""Ids of this project's tokenizer against HF tokenizers, on a megabyte or more of each kind of text.

    python tools/reference/check_tokenizer_parity.py BENCH_TOKENIZER TOKENIZER_JSON [TEXT...]

BENCH_TOKENIZER is bench/tokenizer.cc built. Without TEXT files: the Python standard library's sources, random letters of
many scripts, the vocabulary's own pieces joined at random, and hostile text. Exits 1 on the first difference and prints it.
"""

import pathlib
import random
import subprocess
import sys
import sysconfig
import tempfile

import numpy as np
from tokenizers import Tokenizer, __version__

SEED = 20261201
SIZE = 1_500_000


def standard_library():
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    text = ""
    for path in sorted(root.glob("*.py")):
        text += path.read_text(encoding="utf-8", errors="ignore")
        if len(text) > SIZE:
            break
    return text


def multilingual(rng):
    """Random letters of many scripts in words and lines: not language, but every block of the vocabulary."""
    blocks = [(0x41, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x620, 0x64A), (0x904, 0x939), (0xE01, 0xE2E),
              (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F), (0x1780, 0x17B3)]
    out = []
    for _ in range(SIZE // 14):
        low, high = rng.choice(blocks)
        out.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 9))) + rng.choice([" ", " ", " ", ", ", ".\n", ""]))
    return "".join(out)


def vocabulary_pieces(tokenizer, rng, join):
    pieces = sorted(piece.replace("\u2581", " ") for piece in tokenizer.get_vocab())
    out, size = [], 0
    while size < SIZE:
        out.append(rng.choice(pieces) + rng.choice(join))
        size += len(out[-1])
    return "".join(out)


def hostile(rng):
    alphabet = ["<|turn>", "<turn|>", "<", ">", "</", "> </", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\0", "\u2581", "\ufeff", "\u200d", "\u0301",
                "\U0001f469\u200d\U0001f680", "\U0010ffff", "\ufffd", "<0x41>", "<unused7>", "a" * 50, " " * 40, "\n" * 40, "\t" * 40, "0123456789"]
    return "".join(rng.choice(alphabet) for _ in range(SIZE // 6))


def main():
    bench, path = sys.argv[1:3]
    tokenizer = Tokenizer.from_file(path)
    rng = random.Random(SEED)
    texts = {name: pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[3:]} or {
        "code": standard_library(),
        "multilingual": multilingual(rng),
        "pieces": vocabulary_pieces(tokenizer, rng, ["", " "]),
        "pieces, odd joints": vocabulary_pieces(tokenizer, rng, ["", "", "\n", "\t", "<", ">", "  "]),
        "hostile": hostile(rng)}
    print(f"tokenizers {__version__}")
    for name, text in texts.items():
        expected = np.array(tokenizer.encode(text, add_special_tokens=False).ids, dtype="<i4")
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode("utf-8"))
            file.flush()
            found = np.frombuffer(subprocess.run([bench, "--ids", path, file.name], check=True, capture_output=True).stdout, dtype="<i4")
        if not np.array_equal(expected, found):
            at = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b), min(len(expected), len(found)))
            sys.exit(f"{name}: differ at id {at}: expected {expected[at - 3:at + 5]}, found {found[at - 3:at + 5]}")
        print(f"{name}: {len(text.encode('utf-8'))} bytes, {len(found)} ids, equal")


main()
