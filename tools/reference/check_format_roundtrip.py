"""Reads with the `gguf` and `safetensors` packages what dgemma's writers wrote. Not part of CI, which has no Python
packages. Run: python check_format_roundtrip.py <path to the test_format binary>."""

import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from safetensors.numpy import load_file

golden = pathlib.Path(__file__).resolve().parents[2] / "tests" / "format" / "golden"

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "--gtest_filter=Writer.*"], check=True, stdout=subprocess.DEVNULL,
                   env=os.environ | {"DGEMMA_WRITTEN_FOLDER": folder})
    folder = pathlib.Path(folder)

    reader = gguf.GGUFReader(folder / "dgemma_writer_GgufTypedValues" / "typed.gguf")
    values = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    expected = {"general.alignment": 64, "f32": 0.5, "bool": True, "string": "text", "i32s": [-1, 2], "f32s": [0.25],
                "bools": [False, True], "strings": ["", "b"]}
    assert values == expected, values
    ramp = (np.arange(6) / 8 - 2).astype(np.float32)
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    assert list(tensors) == ["one", "two"], tensors
    np.testing.assert_array_equal(tensors["one"], ramp.reshape(2, 3))
    np.testing.assert_array_equal(tensors["two"], ramp)

    written = load_file(folder / "dgemma_writer_SafetensorsHoldsThePackagesTensors" / "copy.safetensors")
    original = load_file(golden / "small.safetensors")
    assert written.keys() == original.keys()
    for name, tensor in original.items():
        assert written[name].dtype == tensor.dtype
        np.testing.assert_array_equal(written[name], tensor)
print("the packages read what dgemma wrote")
