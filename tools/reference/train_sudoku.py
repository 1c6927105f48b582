"""Trains a small DiffusionGemma on Sudoku with Transformers' own classes, and exports it.

    python tools/reference/train_sudoku.py --box 2x2 --out DIR --minutes 12
    python tools/reference/train_sudoku.py --box 2x3 --out DIR --minutes 45
    python tools/reference/train_sudoku.py --box 2x3 --out DIR --export models/sudoku-6x6
    python tools/reference/train_sudoku.py --box 2x3 --out DIR --evaluate models/sudoku-6x6

A run is resumed from DIR/state.pt when that exists. Loss of one example: cross-entropy of the decoder at every canvas
position, the canvas corrupted to uniform random ids with probability t ~ U(0, 1), plus next-token cross-entropy of the
encoder over the answer. Half of the examples see the self-conditioning signal of a pass without gradient. What is
measured and exported is the running average of the weights.
"""

import argparse
import datetime
import json
import pathlib
import time
import types

import numpy
import torch
import torch.nn.functional as F
from torch import distributed, multiprocessing
from safetensors.torch import load_file, save_file
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig
from transformers import Gemma4VisionConfig
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaRMSNorm

import sudoku

SLIDING, FULL = "sliding_attention", "full_attention"
# `fewest` and `most` are the numbers of givens of a puzzle.
SIZES = {
    "2x2": dict(hidden=96, layers=[SLIDING, FULL] * 2, dense=192, expert=96, window=64, fewest=4, most=9),
    "2x3": dict(hidden=128, layers=[SLIDING] * 3 + [FULL], dense=192, expert=64, window=128, fewest=10, most=18),
    "3x3": dict(hidden=128, layers=[SLIDING, FULL] * 2, dense=256, expert=128, window=256, fewest=36, most=56),
}
# Part of the run over which puzzles go from nearly full grids to those of `fewest` to `most` givens.
EASY_START = 0.2
# Part of the run at whose end the learning rate falls to zero.
COOL_DOWN = 0.3


def make_model(box):
    size = SIZES[str(box)]
    n = box.n
    text = DiffusionGemmaTextConfig(
        vocab_size=len(sudoku.VOCABULARY),
        hidden_size=size["hidden"],
        intermediate_size=size["dense"],
        num_hidden_layers=len(size["layers"]),
        num_attention_heads=4,
        num_key_value_heads=2,
        num_global_key_value_heads=1,
        head_dim=32,
        global_head_dim=64,
        max_position_embeddings=4096,
        sliding_window=size["window"],
        layer_types=size["layers"],
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=size["expert"],
        initializer_range=0.06,
        eos_token_id=sudoku.EOS,
        pad_token_id=sudoku.PAD,
        bos_token_id=sudoku.BOS,
    )
    # The class demands a vision tower; it is not trained and not exported.
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
    config = DiffusionGemmaConfig(
        text_config=text, vision_config=vision, canvas_length=n * (n + 1), initializer_range=0.06
    )
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    model = DiffusionGemmaForBlockDiffusion(config).float()
    for name, parameter in model.named_parameters():
        # Scores are not divided by sqrt(head_dim): start with weights that do so.
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            parameter.data.fill_(parameter.shape[0] ** -0.25)
        elif name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
            parameter.data.fill_(0.5)
    model.generation_config = DiffusionGemmaGenerationConfig(
        max_new_tokens=n * (n + 1),
        max_denoising_steps=48,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        t_min=0.4,
        t_max=0.8,
        stability_threshold=1,
        confidence_threshold=0.005,
        eos_token_id=[sudoku.EOS],
        pad_token_id=sudoku.PAD,
    )
    return model


class RmsNorm(torch.autograd.Function):
    """The class's norm in float32 with less than half the passes over memory; a step takes a fifth less time."""

    @staticmethod
    def forward(ctx, x, weight, eps):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.rsqrt(norm * norm / x.shape[-1] + eps)
        normed = x * scale
        ctx.save_for_backward(normed, scale, weight)
        return normed if weight is None else normed * weight

    @staticmethod
    def backward(ctx, d):
        normed, scale, weight = ctx.saved_tensors
        product = (d * normed).reshape(-1, normed.shape[-1])
        if weight is None:
            d_weight, along = None, product.sum(1)
        else:
            d_weight, along = product.sum(0), torch.mv(product, weight)
            d = d * weight
        d_x = torch.addcmul(d, normed, along.reshape(scale.shape) / -normed.shape[-1]).mul_(scale)
        return d_x, d_weight, None


def fast_norm(self, x):
    return RmsNorm.apply(x, self.weight if self.with_scale else None, self.eps)


class Prefix:
    """Encoder keys and values as the decoder reads them: the first `length` positions, every row `draws` times."""

    is_compileable = False

    def __init__(self, layers):
        self.layers = layers

    @classmethod
    def of(cls, cache, length, draws):
        def view(tensor):
            return tensor[:, :, :length].repeat(draws, 1, 1, 1)

        return cls([types.SimpleNamespace(keys=view(l.keys), values=view(l.values)) for l in cache.layers])

    def first(self, rows):
        return Prefix([types.SimpleNamespace(keys=l.keys[:rows], values=l.values[:rows]) for l in self.layers])


def loss_of(model, pairs, generator, draws):
    """Encoder and decoder loss; each puzzle is corrupted `draws` times behind one encoder pass."""
    prompts = torch.from_numpy(sudoku.prompt_ids(pairs[:, 0]))
    answers = torch.from_numpy(sudoku.answer_ids(pairs[:, 1]))
    start, length = prompts.shape[1], answers.shape[1]
    vocabulary = len(sudoku.VOCABULARY)

    encoded = model.model.encoder(input_ids=torch.cat([prompts, answers[:, :-1]], dim=1))
    cap = model.final_logit_softcapping
    logits = torch.tanh(model.lm_head(encoded.last_hidden_state[:, start - 1 :]) / cap) * cap
    encoder_loss = F.cross_entropy(logits.reshape(-1, vocabulary), answers.reshape(-1))
    # The canvas sees the prompt only; the window is wider than both.
    prefix = Prefix.of(encoded.past_key_values, start, draws)

    clean = answers.repeat(draws, 1)
    # The draws of a puzzle lie in different parts of (0, 1), in random order.
    part = torch.rand(draws, len(answers), generator=generator).argsort(0)
    t = ((part + torch.rand(part.shape, generator=generator)) / draws).reshape(-1, 1)
    noise = torch.randint(0, vocabulary, clean.shape, generator=generator)
    canvas = torch.where(torch.rand(clean.shape, generator=generator) < t, noise, clean)
    positions = torch.arange(start, start + length)[None]
    # Draws are alike, so that the first half is a random half.
    half = len(clean) // 2
    carried = torch.zeros(*clean.shape, vocabulary)
    with torch.no_grad():
        carried[:half] = model(
            decoder_input_ids=canvas[:half], past_key_values=prefix.first(half), decoder_position_ids=positions
        ).logits
    logits = model(
        decoder_input_ids=canvas,
        past_key_values=prefix,
        decoder_position_ids=positions,
        self_conditioning_logits=carried,
        self_conditioning_mask=torch.arange(len(clean)) < half,
    ).logits
    decoder_loss = F.cross_entropy(logits.reshape(-1, vocabulary), clean.reshape(-1))
    return encoder_loss, decoder_loss


@torch.no_grad()
def evaluate(model, pairs, steps, seed=5):
    """Share of exactly solved puzzles, of right cells, and mean denoising steps."""
    model.eval()
    torch.manual_seed(seed)
    prompts = torch.from_numpy(sudoku.prompt_ids(pairs[:, 0]))
    answers = torch.from_numpy(sudoku.answer_ids(pairs[:, 1]))
    out = model.generate(prompts, max_denoising_steps=steps)
    right = out.sequences[:, prompts.shape[1] :] == answers
    side = pairs.shape[-1]
    cells = right.reshape(len(pairs), side, side + 1)[:, :, :side]  # a row's last token is no cell
    passes = answers.shape[1] / out.tokens_per_forward
    model.train()
    return right.all(1).float().mean().item(), cells.float().mean().item(), passes.mean().item()


def pools(box, folder):
    """Minimal puzzles to train on, and held-out puzzles of other grids."""
    size = SIZES[str(box)]
    file = folder / "pool.npz"
    if not file.exists():
        pool = sudoku.make_pool(box, 4_000 if box.n == 9 else 20_000, 11)
        held = sudoku.with_givens(
            sudoku.make_pool(box, 512, 99), size["fewest"], size["most"], numpy.random.default_rng(99)
        )
        numpy.savez_compressed(file, train=pool, held=held)
    data = numpy.load(file)
    return data["train"], data["held"]


def key(pair):
    """What a held-out puzzle must not share with one of training: the grid up to names of digits; in 4x4, which has but
    12 of these, the givens."""
    return pair[0].tobytes() if pair.shape[1] == 4 else sudoku.canonical(pair[1])


def examples(box, pool, hidden, count, progress, rng):
    """Puzzles for one step: symmetric copies of the pool's without those in `hidden`, with more givens at the start."""
    size = SIZES[str(box)]
    ease = max(0.0, 1 - progress / EASY_START)

    def givens(goal, start):
        return round(goal + ease * (start * box.n**2 - goal))

    pairs = sudoku.augment(pool[rng.integers(0, len(pool), count)], box, rng)
    pairs = sudoku.with_givens(pairs, givens(size["fewest"], 0.6), givens(size["most"], 0.9), rng)
    return numpy.array([pair for pair in pairs if key(pair) not in hidden])


def shared(parameters, seconds):
    """Replaces gradients by their mean over the workers, and returns the mean of their `seconds`."""
    if not distributed.is_initialized():
        return seconds
    flat = torch.cat([*(p.grad.reshape(-1) for p in parameters), torch.tensor([seconds])])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    for p, part in zip(parameters, flat.split([p.numel() for p in parameters] + [1])):
        p.grad.copy_(part.view_as(p))
    return flat[-1].item()


def train(rank, workers, box, folder, minutes, batch, peak, draws):
    """One of `workers` processes: all hold the same weights and average their gradients; the first one writes."""
    torch.set_num_threads(1)
    if workers > 1:
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/rendezvous",
            rank=rank,
            world_size=workers,
            timeout=datetime.timedelta(days=1),  # a run may be stopped and continued
        )
    DiffusionGemmaRMSNorm.forward = fast_norm
    pool, held = pools(box, folder)
    hidden = {key(pair) for pair in held}
    model, average = make_model(box), make_model(box)
    parameters = [p for name, p in model.named_parameters() if "vision" not in name]
    averages = [p for name, p in average.named_parameters() if "vision" not in name]
    if rank == 0:
        print("parameters", sum(p.numel() for p in parameters), flush=True)
    optimizer = torch.optim.AdamW(parameters, lr=peak, betas=(0.95, 0.99), weight_decay=1e-4)
    step, spent = 0, 0.0
    state_file = folder / "state.pt"
    if state_file.exists():
        state = torch.load(state_file)
        model.load_state_dict(state["model"])
        average.load_state_dict(state["average"])
        optimizer.load_state_dict(state["optimizer"])
        step, spent = state["step"], state["spent"]
        if rank == 0:
            print("resumed at step", step, "after", round(spent), "s", flush=True)
    model.train()

    def keep():
        torch.save(
            {
                "model": model.state_dict(),
                "average": average.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step,
                "spent": spent,
            },
            folder / "state.tmp",
        )
        (folder / "state.tmp").rename(state_file)

    last_report = last_look = time.time()
    sums = numpy.zeros(3)
    while spent < minutes * 60:
        began = time.process_time()
        rng = numpy.random.default_rng([*box, step, rank])
        generator = torch.Generator().manual_seed((box.n * 1_000_003 + step) * workers + rank)
        progress = spent / (minutes * 60)
        pairs = examples(box, pool, hidden, batch, progress, rng)
        for group in optimizer.param_groups:
            group["lr"] = peak * min(1, (step + 1) / 100, (1 - progress) / COOL_DOWN)
        encoder_loss, decoder_loss = loss_of(model, pairs, generator, draws)
        optimizer.zero_grad()
        (encoder_loss + decoder_loss).backward()
        seconds = shared(parameters, time.process_time() - began)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, max(0.001, 10 / (step + 10)))
        step += 1
        spent += seconds
        if rank > 0:
            continue
        sums += encoder_loss.item(), decoder_loss.item(), 1
        if time.time() - last_report > 30:
            print(
                f"{spent:6.0f} s  step {step}  encoder {sums[0] / sums[2]:.4f}  decoder {sums[1] / sums[2]:.4f}",
                flush=True,
            )
            sums[:] = 0
            last_report = time.time()
        if time.time() - last_look > 180:
            keep()
            exact, cells, passes = evaluate(average, held[:128], 16)
            print(f"        held-out: exact {exact:.3f}  cells {cells:.3f}  steps {passes:.1f}", flush=True)
            last_look = time.time()
    if rank > 0:
        return
    keep()
    for steps in (1, 8, 48):
        exact, cells, passes = evaluate(average, held, steps)
        print(f"held-out 512, at most {steps} steps: exact {exact:.4f}  cells {cells:.4f}  steps {passes:.2f}")


def export(box, folder, target):
    model = make_model(box)
    model.load_state_dict(torch.load(folder / "state.pt")["average"])
    model = model.to(torch.bfloat16)
    model.config.dtype = "bfloat16"
    target.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(target)
    file = target / "model.safetensors"
    tensors = {name: value.clone() for name, value in load_file(file).items() if "vision" not in name}
    save_file(tensors, file, metadata={"format": "pt"})
    file.chmod(0o644)
    (target / "tokenizer.json").write_text(sudoku.tokenizer_json() + "\n")
    (target / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<bos>",
                "eos_token": "<eos>",
                "pad_token": "<pad>",
                "unk_token": "<unk>",
                "mask_token": "<mask>",
            },
            indent=2,
        )
        + "\n"
    )
    # A conversation is its last message: a grid.
    (target / "chat_template.jinja").write_text("{{ bos_token }}{{ messages[-1]['content'] | trim }}{{ '\\n' }}")


def evaluate_exported(box, folder, exported):
    """The shipped weights, in float32, with Transformers' sampler and three seeds."""
    model = make_model(box)
    missing, unexpected = model.load_state_dict(load_file(exported / "model.safetensors"), strict=False)
    missing = [name for name in missing if not ("vision" in name or name.startswith("model.encoder.") or name == "lm_head.weight")]
    if missing or unexpected:
        raise SystemExit(f"{exported}: missing {missing}, unexpected {unexpected}")
    held = pools(box, folder)[1]
    for steps in (48, 8):
        for seed in (5, 6, 7):
            exact, cells, passes = evaluate(model, held, steps, seed)
            print(f"seed {seed}, at most {steps} steps: exact {exact:.4f}  cells {cells:.4f}  steps {passes:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--box", type=sudoku.Box.parse, required=True, help="rows x columns of a box: 2x2, 2x3 or 3x3")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=45, help="CPU time of a worker")
    parser.add_argument("--batch", type=int, default=8, help="puzzles a step")
    parser.add_argument("--draws", type=int, default=8, help="noisy canvases of each")
    parser.add_argument("--peak", type=float, default=2e-3)
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread")
    parser.add_argument("--export", type=pathlib.Path)
    parser.add_argument("--evaluate", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.export:
        export(arguments.box, arguments.out, arguments.export)
        return
    if arguments.evaluate:
        evaluate_exported(arguments.box, arguments.out, arguments.evaluate)
        return
    folder = arguments.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rendezvous").unlink(missing_ok=True)
    pools(arguments.box, folder)
    multiprocessing.spawn(
        train,
        (arguments.workers, arguments.box, folder, arguments.minutes, arguments.batch, arguments.peak, arguments.draws),
        nprocs=arguments.workers,
    )


if __name__ == "__main__":
    main()
