"""Makes tests/golden: a tiny random checkpoint and recorded passes of Transformers' DiffusionGemma, in float32.

    python tools/reference/make_goldens.py tests/golden [case ...]

tests/golden/README.md describes the cases and the names of the tensors.
"""

import copy
import json
import pathlib
import sys

import numpy
import safetensors
import torch
import transformers
from safetensors.torch import save_file
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSamplerConfig,
    StableAndConfidentStoppingCriteria,
)

import tiny_model
from recorded_generation import Recorder
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


def case_bf16(model, folder, name, seed, canvases):
    """The model in bfloat16: every activation rounded, as the published checkpoint runs."""
    prompt = ids(seed, 40)
    first = torch.stack([any_ids(seed + 1 + c, 16) for c in range(canvases)])

    def all_logits(model):
        cache = encode(model, prompt).past_key_values
        return torch.cat([rows(model(decoder_input_ids=row[None], past_key_values=cache).logits.float()) for row in first])

    exact, rounded = all_logits(model), all_logits(copy.deepcopy(model).to(torch.bfloat16))
    # How far apart the reference's own two precisions are: an engine that computes in float32 must be as close.
    p, q = torch.log_softmax(rounded.double(), -1), torch.log_softmax(exact.double(), -1)
    spread = {
        "top1_agreement": float((exact.argmax(-1) == rounded.argmax(-1)).double().mean()),
        "mean_kl": float((p.exp() * (p - q)).sum(-1).mean()),
    }
    out = {"prompt_ids": prompt.int(), "canvas_ids": first.int(), "logits": rounded}
    about = f"{case_bf16.__doc__} First steps of {canvases} canvases behind a prompt of 40."
    write(folder, name, out, about, seed, {"float32_against_bfloat16": spread})


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


def case_generate(model, folder, name, prompts, seeds, about, settings, canvas=tiny_model.CANVAS):
    """generate() over left-padded prompts; one set of tensors a row, under `row<b>.` when there are several."""
    longest = max(len(prompt) for prompt in prompts)
    padded = torch.stack([torch.nn.functional.pad(prompt, (longest - len(prompt), 0)) for prompt in prompts])
    mask = torch.stack([torch.arange(longest) >= longest - len(prompt) for prompt in prompts])
    recorder = Recorder(seeds, tiny_model.VOCABULARY)
    # Eager masks cannot be built for padded rows in this version (docs/pitfalls.md).
    model.set_attn_implementation("sdpa" if len(prompts) > 1 else "eager")
    model.config.canvas_length = canvas
    with recorder.active(model):
        result = model.generate(padded, attention_mask=mask, **settings)
    model.config.canvas_length = tiny_model.CANVAS
    out = {}
    for b, prompt in enumerate(prompts):
        prefix = f"row{b}." if len(prompts) > 1 else ""
        out.update(recorder.tensors(b, prefix))
        out[prefix + "prompt_ids"] = prompt.int()
        out[prefix + "new_ids"] = result.sequences[b, longest:].int()
        out[prefix + "tokens_per_forward"] = result.tokens_per_forward[b : b + 1].float()
    stated = {key: getattr(value, "entropy_bound", value) for key, value in settings.items()}
    if canvas != tiny_model.CANVAS:
        stated["canvas_length"] = canvas
    write(folder, name, out, about, seeds, {"settings": {**DEFAULTS, **stated}})


DEFAULTS = {
    "max_new_tokens": 48,
    "max_denoising_steps": 8,
    "sampler_config": 0.1,
    "t_min": 0.4,
    "t_max": 0.8,
    "stability_threshold": 1,
    "confidence_threshold": 0.005,
    "eos_token_id": None,
    "pad_token_id": 0,
}


def bound(value):
    return EntropyBoundSamplerConfig(entropy_bound=value)


WARM = {"eos_token_id": [511], "sampler_config": bound(0.5)}
COLD = {**WARM, "t_min": 0.02, "t_max": 0.05, "max_denoising_steps": 12, "confidence_threshold": 0.05}
BATCH_EOS = [222, 414]


def case_stopping(model, folder, name):
    """The stopping rule alone, for made-up sequences of argmax canvases and two-way logits."""
    seed, steps, length = 501, 40, 4
    generator = numpy.random.default_rng(seed)
    canvases = torch.from_numpy(generator.integers(0, 2, (steps, length))).long()
    canvases[10:14] = canvases[10]
    canvases[20:30] = canvases[20]
    logits = torch.zeros(steps, length, 2)
    logits[:, :, 1] = torch.from_numpy(generator.uniform(1, 6, (steps, length))).float()
    out = {"argmax": canvases.int(), "entropies": torch.distributions.Categorical(logits=logits).entropy()}
    for stability in (0, 1, 2, 3):
        for confidence in (0.06, 0.12, 0.3):
            rule = StableAndConfidentStoppingCriteria(stability, confidence)
            stops = [bool(rule(canvases[s][None], logits[s][None])) for s in range(steps)]
            out[f"stop.{stability}.{confidence}"] = torch.tensor(stops).int()
    write(folder, name, out, case_stopping.__doc__, seed)


CASES = {
    "encode_short": lambda m, f, n: case_encode(m, f, n, 101, 9),
    "encode_long": lambda m, f, n: case_encode(m, f, n, 102, 40),
    "canvas_short": lambda m, f, n: case_canvas(m, f, n, 201, 9),
    "canvas_long": lambda m, f, n: case_canvas(m, f, n, 211, 40),
    "canvas_blocks": lambda m, f, n: case_blocks(m, f, n, 301),
    "bf16": lambda m, f, n: case_bf16(m, f, n, 601, 8),
    "generate": lambda m, f, n: case_generate(
        m, f, n, [ids(401, 9)], [7007], "Three canvases of 8 steps each; nothing stops early.", WARM
    ),
    "generate_eos": lambda m, f, n: case_generate(
        m, f, n, [ids(401, 9)], [7007], "The same; a stop id within the second canvas.", {**WARM, "eos_token_id": [76, 394]}
    ),
    "generate_stop": lambda m, f, n: case_generate(
        m, f, n, [ids(401, 9)], [7007], "Cold: each canvas is left when stable and confident.", COLD
    ),
    "generate_batch": lambda m, f, n: case_generate(
        m,
        f,
        n,
        [ids(401, 9), ids(402, 14)],
        [7007, 7013],
        "Two unequal prompts, left-padded; rows freeze at their own step, one meets its stop id in the first canvas.",
        {**COLD, "eos_token_id": BATCH_EOS},
    ),
    "generate_canvas": lambda m, f, n: case_generate(
        m,
        f,
        n,
        [ids(401, 9)],
        [7007],
        "Canvases of 6 tokens, shorter than the checkpoint's and than the window: four of at most 8 steps.",
        {**WARM, "max_new_tokens": 24},
        canvas=6,
    ),
    "stopping": case_stopping,
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
