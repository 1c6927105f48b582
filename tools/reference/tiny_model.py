"""The tiny random DiffusionGemma that the goldens are recorded from, made with Transformers' own classes.

Small, but with every feature at work: both layer kinds, values from keys on full layers, partial rotation, unequal head
counts, more experts than used, a window shorter than the prompts, different scalars for the two roles. Every weight is
exact in bfloat16, so that a bf16 copy of the checkpoint is the same model.
"""

import json
import pathlib

import torch
from safetensors.torch import load_file, save_file
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig
from transformers import Gemma4VisionConfig
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

SEED = 20261201
VOCABULARY = 512
CANVAS = 16
WINDOW = 12
EOS = [1, 106, 50]


def make_config():
    text = DiffusionGemmaTextConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=80,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_global_key_value_heads=1,
        head_dim=16,
        global_head_dim=32,
        max_position_embeddings=4096,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
        use_bidirectional_attention="vision",
        num_experts=8,
        top_k_experts=2,
        moe_intermediate_size=16,
        final_logit_softcapping=30.0,
        eos_token_id=EOS,
    )
    # The class demands a vision tower; its tensors are not saved.
    vision = Gemma4VisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=16,
        global_head_dim=16,
        position_embedding_size=4,
        patch_size=2,
    )
    return DiffusionGemmaConfig(
        text_config=text,
        vision_config=vision,
        canvas_length=CANVAS,
        boi_token_id=509,
        image_token_id=510,
        eoi_token_id=511,
        dtype="float32",
    )


def randomise(model, seed=SEED):
    """Draws every text weight so that no feature is the identity; rounds to bfloat16 precision."""
    generator = torch.Generator().manual_seed(seed)

    def normal(shape, mean, std):
        return torch.randn(shape, generator=generator) * std + mean

    def uniform(shape, low, high):
        return torch.rand(shape, generator=generator) * (high - low) + low

    # Tied parameters carry both names here; the decoder's is the one in the file.
    values = dict(model.named_parameters(remove_duplicate=False))
    values.update(model.named_buffers())
    for name in sorted(values):
        if "decoder." not in name and "layer_scalar" not in name:
            continue
        tensor = values[name]
        if name.endswith("inv_freq") or name.endswith("embed_scale"):
            continue
        if name.endswith("embed_tokens.weight"):
            value = normal(tensor.shape, 0, 0.4)
        elif name.endswith("layer_scalar"):
            value = uniform(tensor.shape, 0.6, 1.2)
        elif name.endswith("q_norm.weight") or name.endswith("k_norm.weight"):
            value = uniform(tensor.shape, 0.3, 1.1)
        elif name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
            # Branches smaller than the stream: otherwise rounding grows a hundredfold and no two programs could
            # agree on the tokens of a whole generation (so does self-conditioning, below).
            value = uniform(tensor.shape, 0.1, 0.5)
        elif "norm" in name or name.endswith("router.scale"):
            value = uniform(tensor.shape, 0.5, 1.5)
        elif name.endswith("per_expert_scale"):
            value = uniform(tensor.shape, 0.4, 1.8)
        elif name.endswith("router.proj.weight"):
            value = normal(tensor.shape, 0, 1.5)
        else:  # projections, [.., out, in]
            gain = 0.3 if "self_conditioning.down_proj" in name else 1.0
            value = normal(tensor.shape, 0, gain * tensor.shape[-1] ** -0.5)
        tensor.data.copy_(value.to(torch.bfloat16).float())


def make_model():
    torch.manual_seed(SEED)
    config = make_config()
    config._attn_implementation = "eager"
    model = DiffusionGemmaForBlockDiffusion(config).float().eval()
    randomise(model)
    # One loop over the experts in ascending order, as the reference describes them.
    model.set_experts_implementation("eager")
    model.generation_config = DiffusionGemmaGenerationConfig(
        max_new_tokens=48,
        max_denoising_steps=8,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        t_min=0.4,
        t_max=0.8,
        stability_threshold=1,
        confidence_threshold=0.005,
        eos_token_id=EOS,
        pad_token_id=0,
    )
    return model


def save(model, folder):
    """Writes what save_pretrained writes, without the vision tower."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    file = folder / "model.safetensors"
    tensors = {name: value for name, value in load_file(file).items() if "vision" not in name}
    save_file(tensors, file, metadata={"format": "pt"})
    # The released file states the full layers' sizes in the older way; both must be read alike.
    config = json.loads((folder / "config.json").read_text())
    text = config["text_config"]
    text.pop("per_layer_config")
    text["global_head_dim"] = 32
    text["num_global_key_value_heads"] = 1
    (folder / "config_released_style.json").write_text(json.dumps(config, indent=2) + "\n")
