#!/usr/bin/env python3
"""Checks the order of the folders (docs/architecture.md) and the length of files."""
import pathlib
import re
import sys

ROWS = [["base"], ["tensor"], ["format", "parallel"], ["kernels"], ["ops"], ["model", "text", "vision"], ["diffusion"],
        ["engine", "train"], ["server", "eval"], ["cli"]]
RANK = {folder: rank for rank, row in enumerate(ROWS) for folder in row}
MAX_LINES = 600

root = pathlib.Path(__file__).resolve().parent.parent
problems = []
for path in sorted((root / "src").rglob("*")):
    if path.suffix not in (".h", ".cc", ".inc"):
        continue
    folder = path.relative_to(root / "src").parts[0]
    text = path.read_text()
    if text.count("\n") > MAX_LINES:
        problems.append(f"{path}: {text.count(chr(10))} lines, at most {MAX_LINES}")
    for target in re.findall(r'#include "([a-z_]+)/', text):
        same = target == folder
        lower = target in RANK and RANK[target] < RANK[folder]
        if folder == "kernels" and not same:
            problems.append(f"{path}: kernels include nothing but themselves, found {target}/")
        elif target in RANK and not same and not lower:
            problems.append(f"{path}: {folder}/ must not include {target}/")
if problems:
    print("\n".join(problems))
sys.exit(1 if problems else 0)
