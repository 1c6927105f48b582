"""Makes tests/kernels/golden: random blocks of each ggml type with the values the `gguf` package decodes them to, and the
errors of the reference quantisers on two matrices.

    python make_block_goldens.py OUTPUT_FOLDER [LIBGGML]

LIBGGML is a shared library with the quantize_* functions of llama.cpp's ggml-quants.c: the oracle of the K-quant
encoders. Without it the figures of the K-quants already in OUTPUT_FOLDER/case.json are kept.

NAME.bin is 64 blocks, then float32 values: of element 0, s, 2 s, ... (s = `stride` in case.json) shifted by the block's
number modulo s, so that the 64 blocks together check each position 64 / s times.
"""

import ctypes
import importlib.metadata
import json
import pathlib
import sys

import gguf
import numpy
from gguf import GGMLQuantizationType as Type

BLOCKS = 64
# Name: byte offsets of the half-precision scales in a block.
SCALES = {
    "F16": [], "BF16": [],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_XS": [0],
    "MXFP4": [], "NVFP4": [],
}  # fmt: skip


def random_blocks(name, generator):
    block_elements, block_bytes = gguf.GGML_QUANT_SIZES[Type[name]]
    if name in ("F16", "BF16"):  # every exponent, both signs, zeros, subnormals; the test has infinities and NaNs of its own
        words = generator.integers(0, 65536, BLOCKS, dtype=numpy.uint16)
        limit = 0x7C00 if name == "F16" else 0x7F80
        words = numpy.where((words & limit) == limit, words & 0x83FF, words).astype(numpy.uint16)
        return words.view(numpy.uint8).reshape(BLOCKS, 2)
    blocks = generator.integers(0, 256, (BLOCKS, block_bytes), dtype=numpy.uint8)
    for offset in SCALES[name]:
        scale = generator.normal(0, 0.02, BLOCKS).astype(numpy.float16)
        scale[0], scale[1] = 0.0, 6e-8  # zero and the smallest subnormal
        blocks[:, offset : offset + 2] = scale.view(numpy.uint8).reshape(BLOCKS, 2)
    if name == "MXFP4":
        blocks[:, 0] = numpy.concatenate([[0, 1, 2, 3], generator.integers(100, 140, BLOCKS - 4)])
    if name == "NVFP4":
        blocks[:, :4] = generator.integers(0, 0x7F, (BLOCKS, 4))
        blocks[0, :4] = [0, 1, 7, 8]
    return blocks


def write_decoding(folder, generator):
    strides = {}
    for name in SCALES:
        block_elements, _ = gguf.GGML_QUANT_SIZES[Type[name]]
        stride = strides[name] = 4 if block_elements == 256 else 1
        blocks = random_blocks(name, generator)
        if name == "F16":
            values = blocks.view(numpy.float16).astype(numpy.float32)
        else:
            values = gguf.quants.dequantize(blocks, Type[name])
        values = values.reshape(BLOCKS, -1)
        kept = [values[i, i % stride :: stride] for i in range(BLOCKS)]
        (folder / f"{name.lower()}.bin").write_bytes(blocks.tobytes() + numpy.concatenate(kept).astype("<f4").tobytes())
    return strides


def matrices():
    """[64, 512] each, from integers alone, so that the test makes the same bits: the sum of twelve 16-bit numbers of
    splitmix64 (Irwin-Hall, near a Gaussian), and its cube, whose tails are heavy."""
    count = 64 * 512
    mask = (1 << 64) - 1
    state = 20261201
    sums = numpy.zeros(count, dtype=numpy.int64)
    for i in range(count):
        for _ in range(3):
            state = (state + 0x9E3779B97F4A7C15) & mask
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
            z ^= z >> 31
            sums[i] += (z & 0xFFFF) + ((z >> 16) & 0xFFFF) + ((z >> 32) & 0xFFFF) + (z >> 48)
    x = (sums - 6 * 65535).astype(numpy.float64) / 65536.0
    return {"gauss": x.astype(numpy.float32), "cubed": (x * x * x).astype(numpy.float32)}


def ggml_quantize(library, name, values):
    block_elements, block_bytes = gguf.GGML_QUANT_SIZES[Type[name]]
    out = numpy.zeros(values.size // block_elements * block_bytes, dtype=numpy.uint8)
    function = getattr(library, "quantize_" + name.lower().replace("_k", "_K"))
    function.restype = ctypes.c_size_t
    size = function(
        values.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(64), ctypes.c_int64(values.size // 64), None,
    )  # fmt: skip
    assert size == out.size
    return out


def errors(values, decoded):
    """Root mean square error: plain, and with the squares of the values as weights (what large weights suffer)."""
    x = values.astype(numpy.float64)
    e = decoded.reshape(-1).astype(numpy.float64) - x
    return {"rms": float(numpy.sqrt(numpy.mean(e * e))), "weighted": float(numpy.sqrt(numpy.sum(x * x * e * e) / numpy.sum(x * x)))}


def main():
    folder = pathlib.Path(sys.argv[1])
    library = ctypes.CDLL(sys.argv[2]) if len(sys.argv) > 2 else None
    folder.mkdir(parents=True, exist_ok=True)
    case_file = folder / "case.json"
    old = json.loads(case_file.read_text()) if case_file.exists() else {}
    case = {
        "generator": "tools/reference/make_block_goldens.py",
        "command": "python tools/reference/make_block_goldens.py tests/kernels/golden LIBGGML",
        "gguf": importlib.metadata.version("gguf"),
        "numpy": numpy.__version__,
        "ggml": "ggml-quants.c of llama.cpp as vendored in llama_cpp_python 0.3.36 (K-quants, no importance matrix)",
        "seed": 1,
        "stride": write_decoding(folder, numpy.random.default_rng(1)),
        "errors": {},
    }
    for matrix, values in matrices().items():
        figures = case["errors"][matrix] = {}
        for name in ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"):
            blocks = gguf.quants.quantize(values, Type[name])
            figures[name] = errors(values, gguf.quants.dequantize(blocks, Type[name]))
            # The encoders of these types are compared byte for byte, on the matrix's first rows.
            first = gguf.GGML_QUANT_SIZES[Type[name]][1] * 32
            (folder / f"encoded_{name.lower()}_{matrix}.bin").write_bytes(blocks.tobytes()[:first])
        for name in ("Q4_K", "Q5_K", "Q6_K"):
            if library is None:
                figures[name] = old["errors"][matrix][name]
            else:
                blocks = ggml_quantize(library, name, values)
                figures[name] = errors(values, gguf.quants.dequantize(blocks, Type[name]))
    case_file.write_text(json.dumps(case, indent=1) + "\n")


main()
