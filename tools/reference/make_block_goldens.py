"""Random blocks of every ggml format and their values as the PyPI package `gguf` unpacks them.

    python tools/reference/make_block_goldens.py tests/kernels/golden
"""

import json
import pathlib
import sys

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

BLOCKS = 16
SEED = 20261201
# Where each format keeps its half-precision scales: random bytes there would be NaN or huge.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "F16": [0], "BF16": [],
          "MXFP4": [], "NVFP4": []}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(SEED)
case = {"program": "gguf (PyPI)", "numpy": np.__version__, "seed": SEED, "blocks": BLOCKS,
        "command": "python tools/reference/make_block_goldens.py tests/kernels/golden", "formats": []}
try:
    from importlib.metadata import version
    case["version"] = version("gguf")
except Exception:
    pass
for name, halves in HALVES.items():
    if not hasattr(GGMLQuantizationType, name):
        continue
    kind = GGMLQuantizationType[name]
    elements, size = GGML_QUANT_SIZES[kind]
    count = BLOCKS if elements > 1 else 256
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for offset in halves:
        scale = rng.normal(0, 0.05, count).astype(np.float16)
        blocks[:, offset : offset + 2] = scale.view(np.uint8).reshape(count, 2)
    if name == "BF16":
        blocks = (rng.normal(0, 1, count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(count, 2)
    if name == "MXFP4":
        blocks[:, 0] = rng.integers(100, 140, count)
    if name == "NVFP4":
        blocks[:, :4] = rng.integers(0, 127, (count, 4))
    try:
        values = dequantize(blocks, kind).astype(np.float32)
    except NotImplementedError:
        print(f"{name}: not in this gguf package", file=sys.stderr)
        continue
    (folder / f"{name}.blocks.bin").write_bytes(blocks.tobytes())
    (folder / f"{name}.values.bin").write_bytes(values.tobytes())
    case["formats"].append({"name": name, "id": int(kind), "elements": int(values.size)})
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
