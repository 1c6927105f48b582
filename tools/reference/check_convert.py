"""What `dgemma convert` and `dgemma quantize` write, as the gguf package reads it: names, shapes, types of the metadata
(spec gguf.md 2.1, 2.2), every value, the bytes of the formats that the package can encode, and the errors of the others.

    python tools/reference/check_convert.py build/dgemma [DIRECTORY ...]

Without directories: the tiny golden checkpoint and models/sudoku-6x6. Needs gguf (checked with 0.19.0) and numpy.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Value

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GLOBAL = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight",
          "self_conditioning.pre_norm.weight": "self_cond_pre_norm.weight",
          "self_conditioning.gate_proj.weight": "self_cond_gate.weight",
          "self_conditioning.up_proj.weight": "self_cond_up.weight",
          "self_conditioning.down_proj.weight": "self_cond_down.weight"}
LAYER = {"input_layernorm.weight": "attn_norm.weight", "self_attn.q_proj.weight": "attn_q.weight",
         "self_attn.k_proj.weight": "attn_k.weight", "self_attn.v_proj.weight": "attn_v.weight",
         "self_attn.o_proj.weight": "attn_output.weight", "self_attn.q_norm.weight": "attn_q_norm.weight",
         "self_attn.k_norm.weight": "attn_k_norm.weight", "post_attention_layernorm.weight": "post_attention_norm.weight",
         "pre_feedforward_layernorm.weight": "ffn_norm.weight", "mlp.gate_proj.weight": "ffn_gate.weight",
         "mlp.up_proj.weight": "ffn_up.weight", "mlp.down_proj.weight": "ffn_down.weight",
         "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
         "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
         "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
         "post_feedforward_layernorm.weight": "post_ffw_norm.weight", "router.proj.weight": "ffn_gate_inp.weight",
         "router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
         "experts.gate_up_proj": "ffn_gate_up_exps.weight", "experts.down_proj": "ffn_down_exps.weight",
         "layer_scalar": "layer_output_scale.weight"}
U32, I32, F32, BOOL, STRING = Value.UINT32, Value.INT32, Value.FLOAT32, Value.BOOL, Value.STRING
KEYS = {
    STRING: "general.architecture general.type general.name general.size_label",
    U32: """general.quantization_version general.file_type A.block_count A.context_length A.embedding_length
            A.feed_forward_length A.attention.head_count A.expert_count A.expert_used_count A.expert_feed_forward_length
            A.attention.key_length A.attention.value_length A.attention.key_length_swa A.attention.value_length_swa
            A.rope.dimension_count A.rope.dimension_count_swa A.attention.sliding_window A.attention.shared_kv_layers
            A.embedding_length_per_layer_input diffusion.canvas_length diffusion.eb_max_steps
            diffusion.eb_stability_threshold""",
    F32: """A.rope.freq_base A.rope.freq_base_swa A.attention.layer_norm_rms_epsilon A.final_logit_softcapping
            diffusion.eb_t_min diffusion.eb_t_max diffusion.eb_entropy_bound diffusion.eb_confidence_threshold""",
    BOOL: "A.attention.causal",
}
LISTS = {"A.attention.head_count_kv": I32, "A.attention.sliding_window_pattern": BOOL}
TOKENIZER = {"model": [STRING], "tokens": [Value.ARRAY, STRING], "scores": [Value.ARRAY, F32],
             "token_type": [Value.ARRAY, I32], "merges": [Value.ARRAY, STRING], "bos_token_id": [U32],
             "eos_token_id": [U32], "unknown_token_id": [U32], "padding_token_id": [U32], "mask_token_id": [U32],
             "add_space_prefix": [BOOL], "add_bos_token": [BOOL]}
# Root mean square error over that of the values, for weights near a normal distribution.
BOUNDS = {Type.F32: 1e-7, Type.F16: 1e-3, Type.BF16: 4e-3, Type.Q8_0: 0.01, Type.Q6_K: 0.03, Type.Q5_K: 0.06,
          Type.Q5_0: 0.06, Type.Q5_1: 0.06, Type.Q4_K: 0.12, Type.Q4_0: 0.14}
# The types that the package encodes, and with the same rule as ggml's reference.
ENCODED = {Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q5_0, Type.Q5_1}


def dgemma(*arguments):
    subprocess.run([program, *map(str, arguments)], check=True, stderr=subprocess.DEVNULL)


def read_safetensors(directory):
    """name -> float32 array and dtype, straight from the format's description (numpy has no bfloat16)."""
    out = {}
    for path in sorted(directory.glob("*.safetensors")):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:8 + length]).items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            raw = np.frombuffer(data[8 + length + begin:8 + length + end], dtype=np.uint8)
            if entry["dtype"] == "BF16":
                values = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            else:
                values = raw.view({"F32": np.float32, "F16": np.float16}[entry["dtype"]]).astype(np.float32)
            out[name] = values.reshape(entry["shape"]), entry["dtype"]
    return out


def gguf_name(name):
    encoder = "model.encoder.language_model.layers."
    if name.startswith(encoder):
        layer, rest = name[len(encoder):].split(".", 1)
        return f"blk.{layer}.enc_layer_output_scale.weight" if rest == "layer_scalar" else None
    rest = name.removeprefix("model.decoder.")
    if rest.startswith("layers."):
        _, layer, rest = rest.split(".", 2)
        return f"blk.{layer}.{LAYER[rest]}"
    return None if name.startswith("model.encoder.") else GLOBAL[rest]


def check_metadata(reader, layers, tokenizer):
    def of(key):
        return reader.fields[key.replace("A.", "diffusion-gemma.", 1) if key.startswith("A.") else key]
    expected = {}
    for kind, keys in KEYS.items():
        expected |= {of(key).name: [kind] for key in keys.split()}
    for key, kind in LISTS.items():
        expected[of(key).name] = [Value.ARRAY, kind]
        assert len(of(key).data) == layers, key
    if tokenizer:
        expected |= {"tokenizer.ggml." + key: types for key, types in TOKENIZER.items()}
        if "tokenizer.chat_template" in reader.fields:
            expected["tokenizer.chat_template"] = [STRING]
    found = {key: field.types for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    for key, types in found.items():
        # The package reports an empty array without its element type.
        if types == [Value.ARRAY]:
            assert expected[key][0] == Value.ARRAY, key
            expected[key] = types
    assert found == expected, (found.keys() ^ expected.keys(), {k for k in found if found[k] != expected.get(k)})
    writer = gguf.GGUFWriter(None, "diffusion-gemma")
    for tensor in reader.tensors:
        writer.tensors[-1][tensor.name] = gguf.gguf_writer.TensorInfo([int(n) for n in reversed(tensor.shape)], Type.F32, 0)
    assert of("general.size_label").contents() == gguf.size_label(*writer.get_total_parameter_count())


def check_tensors(reader, weights, heading):
    expected = {gguf_name(name): entry for name, entry in weights.items() if gguf_name(name)}
    found = {tensor.name: tensor for tensor in reader.tensors}
    rope = gguf.dequantize(found.pop("rope_freqs.weight").data, Type.F32)
    turning = int(np.sum(rope == 1))
    assert np.all(rope[:turning] == 1) and np.all(rope[turning:] == np.float32(1e30))
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    worst, encoded = {}, 0
    for name, tensor in found.items():
        values, stored = expected[name]
        kind = tensor.tensor_type
        assert tuple(reversed(tensor.shape.tolist())) == values.shape, name
        if values.ndim == 1 or name.endswith("ffn_gate_inp.weight"):
            assert kind == Type.F32, name
        decoded = gguf.dequantize(tensor.data, kind).reshape(values.shape)
        if heading == "as stored":
            assert kind in (Type.F32, {"BF16": Type.BF16, "F32": Type.F32, "F16": Type.F16}[stored]), name
            np.testing.assert_array_equal(decoded, values)
        size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
        error = float(np.sqrt(np.mean(np.square(decoded - values, dtype=np.float64))))
        if size > 0:
            worst[kind] = max(worst.get(kind, 0), error / size)
        if kind in ENCODED:
            package = gguf.quantize(values, kind)
            assert np.array_equal(package.view(np.uint8).ravel(), tensor.data.view(np.uint8).ravel()), (name, kind)
            encoded += 1
    for kind, error in worst.items():
        assert error <= BOUNDS[kind], (heading, kind, error)
    print(f"  {heading}: {len(found)} tensors, {encoded} the package's bytes; worst errors",
          ", ".join(f"{kind.name} {error:.4f}" for kind, error in sorted(worst.items()) if error > 0) or "none")


def check_directory(directory, folder):
    print(directory.name)
    weights = read_safetensors(directory)
    tokenizer = (directory / "tokenizer.json").exists()
    options = [] if tokenizer else ["--no-tokenizer"]
    original = folder / "original.gguf"
    dgemma("convert", "-m", directory, "-o", original, "--force", *options)
    layers = json.loads((directory / "config.json").read_text())["text_config"]["num_hidden_layers"]
    reader = gguf.GGUFReader(original)
    check_metadata(reader, layers, tokenizer)
    check_tensors(reader, weights, "as stored")
    before = {key: field.contents() for key, field in reader.fields.items()
              if not key.startswith("GGUF.") and key != "general.file_type"}
    for mix, file_type in {"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_K": 14, "Q5_K": 16, "Q6_K": 18,
                           "Q4_K_M": 15, "Q5_K_M": 17}.items():
        path = folder / "quantized.gguf"
        dgemma("quantize", "-m", original, "-o", path, "--type", mix, "--force")
        reader = gguf.GGUFReader(path)
        after = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
        assert after.pop("general.file_type") == file_type
        assert after == before
        check_tensors(reader, weights, mix)


program = sys.argv[1]
directories = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
with tempfile.TemporaryDirectory() as scratch:
    for checkpoint in directories or [ROOT / "tests/golden/tiny", ROOT / "models/sudoku-6x6"]:
        check_directory(checkpoint, pathlib.Path(scratch))
print("the gguf package reads what dgemma wrote")
