"""Records the named intermediate values of Transformers' DiffusionGemma with forward hooks.

Tensors are float32 [rows, features] (ids int32), row-major, without the batch dimension; heads are laid out head-major
within a row. `role` is "encoder" or "decoder".
"""

import contextlib

import torch
from transformers.models.diffusion_gemma import modeling_diffusion_gemma as modeling

# Layers whose inside is recorded: one sliding, one full. Every layer's output is recorded.
INNER_LAYERS = (1, 2)


def layers_of(model, role):
    return model.model.encoder.language_model if role == "encoder" else model.model.decoder


def rows(tensor):
    """[1, rows, ...] or [rows, ...] -> contiguous [rows, features]."""
    if tensor.dim() > 2:
        assert tensor.shape[0] == 1, tensor.shape
        tensor = tensor[0]
    kind = torch.int32 if not tensor.is_floating_point() else torch.float32
    return tensor.detach().reshape(tensor.shape[0], -1).to(kind).clone().contiguous()


@contextlib.contextmanager
def recording(model, role, out, prefix=""):
    """While active, one pass of the given role writes its values into `out` under `prefix`."""
    stack = layers_of(model, role)
    handles = []

    def on_output(module, name, pick=lambda o: o):
        handles.append(module.register_forward_hook(lambda m, i, o: out.__setitem__(prefix + name, rows(pick(o)))))

    def on_input(module, name):
        handles.append(
            module.register_forward_pre_hook(
                lambda m, args, kwargs: out.__setitem__(
                    prefix + name, rows(args[0] if args else kwargs["hidden_states"])
                ),
                with_kwargs=True,
            )
        )

    on_input(stack.layers[0], "x0")
    for i, layer in enumerate(stack.layers):
        on_output(layer, f"layer.{i}.out")
        if i not in INNER_LAYERS:
            continue
        p = f"layer.{i}."
        on_output(layer.input_layernorm, p + "attn_in")
        on_input(layer.self_attn.o_proj, p + "attn")
        on_output(layer.self_attn, p + "attn_proj", lambda o: o[0])
        on_output(layer.post_attention_layernorm, p + "attn_post")
        on_input(layer.router, p + "mid")
        on_output(layer.post_feedforward_layernorm_1, p + "dense")
        on_output(layer.router, p + "router_ids", lambda o: o[2])
        on_output(layer.router, p + "router_weights", lambda o: o[1])
        on_output(layer.experts, p + "experts")
        on_output(layer.post_feedforward_layernorm_2, p + "moe")
    on_output(stack.norm, "final_norm")
    if role == "decoder":
        on_input_signal = lambda m, args: out.__setitem__(prefix + "self_conditioning_signal", rows(args[1]))
        handles.append(stack.self_conditioning.register_forward_pre_hook(on_input_signal))

    plain = modeling.eager_attention_forward

    def attention(module, query, key, value, attention_mask, **kwargs):
        if module.layer_idx in INNER_LAYERS:
            count = query.shape[2]
            p = f"{prefix}layer.{module.layer_idx}."
            out[p + "q"] = rows(query.transpose(1, 2))
            out[p + "k"] = rows(key[:, :, -count:].transpose(1, 2))
            out[p + "v"] = rows(value[:, :, -count:].transpose(1, 2))
            if key.shape[2] > count:
                out[p + "past_keys"] = rows(key[:, :, :-count].transpose(1, 2))
                out[p + "past_values"] = rows(value[:, :, :-count].transpose(1, 2))
        return plain(module, query, key, value, attention_mask, **kwargs)

    modeling.eager_attention_forward = attention
    try:
        yield out
    finally:
        modeling.eager_attention_forward = plain
        for handle in handles:
            handle.remove()


def head(model, hidden):
    """Soft-capped logits [rows, vocabulary] of final-norm outputs, as the model's own forward computes them."""
    cap = model.final_logit_softcapping
    return torch.tanh(model.lm_head(hidden).float() / cap) * cap
