"""Writes tests/format/golden: small files by the `gguf` and `safetensors` packages that the readers must read. Run:
python make_format_goldens.py <folder>. Values are i / 8 - 2 for element i, exact in every float type used."""

import json
import pathlib
import sys
from importlib.metadata import version

import gguf
import numpy as np
from safetensors.numpy import save_file

out = pathlib.Path(sys.argv[1])


def ramp(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)) / 8 - 2).reshape(shape).astype(dtype)


def write_gguf(path, tensors=True):
    writer = gguf.GGUFWriter(path, "diffusion-gemma")
    writer.add_uint8("a.u8", 200)
    writer.add_int8("a.i8", -100)
    writer.add_uint16("a.u16", 60000)
    writer.add_int16("a.i16", -30000)
    writer.add_uint32("a.u32", 4000000000)
    writer.add_int32("a.i32", -2000000000)
    writer.add_uint64("a.u64", 2**62)
    writer.add_int64("a.i64", -(2**62))
    writer.add_float32("a.f32", 0.5)
    writer.add_float64("a.f64", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "grüß dich")
    writer.add_array("a.strings", ["", "eins", "zwei\n"])
    writer.add_array("a.integers", [8, -8, 2])
    writer.add_array("a.floats", [0.5, -1.25])
    writer.add_array("a.bools", [True, False, True])
    if tensors:
        writer.add_tensor("matrix.weight", ramp(3, 5))
        writer.add_tensor("half.weight", ramp(2, 3, 4, dtype=np.float16))
        scale, quants = np.array([0.5], np.float16), np.arange(-16, 16, dtype=np.int8)
        blocks = np.concatenate([scale.view(np.uint8), quants.view(np.uint8)])
        writer.add_tensor("blocks.weight", np.tile(blocks, (2, 1)), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_split(folder):
    writer = gguf.GGUFWriter(folder / "split.gguf", "diffusion-gemma", split_max_tensors=1)
    writer.add_uint32("a.u32", 7)
    for name in ("one", "two"):
        writer.add_tensor(name, ramp(4))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


write_gguf(out / "small.gguf")
write_split(out)
save_file({"matrix": ramp(3, 5), "half": ramp(2, 3, 4, dtype=np.float16), "ids": np.arange(4, dtype=np.int64)},
          out / "small.safetensors", metadata={"format": "pt"})
(out / "case.json").write_text(json.dumps({
    "generator": "tools/reference/make_format_goldens.py",
    "gguf": version("gguf"), "safetensors": version("safetensors"), "numpy": version("numpy"),
    "tolerance": "exact"}, indent=2) + "\n")
