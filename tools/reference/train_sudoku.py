"""Trains a small DiffusionGemma on Sudoku with Transformers' own classes, and exports it.

    python tools/reference/train_sudoku.py --order 2 --out DIR --minutes 8
    python tools/reference/train_sudoku.py --order 3 --out DIR --minutes 90
    python tools/reference/train_sudoku.py --order 2 --out DIR --export models/sudoku-4x4

A run is resumed from DIR/state.pt when that exists. Loss of one example: cross-entropy of the decoder at every canvas
position, the canvas corrupted to uniform random ids with probability t ~ U(0, 1), plus next-token cross-entropy of the
encoder over the answer. Half of the examples see the self-conditioning signal of a pass without gradient.
"""

import argparse
import json
import math
import pathlib
import time
import types

import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig
from transformers import Gemma4VisionConfig
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

import sudoku

SIZES = {
    2: dict(hidden=96, layers=4, dense=192, experts=4, expert=96, window=64, fewest=4, most=9),
    3: dict(hidden=128, layers=4, dense=256, experts=4, expert=128, window=256, fewest=36, most=56),
}


def make_model(order):
    size = SIZES[order]
    n = order * order
    text = DiffusionGemmaTextConfig(
        vocab_size=len(sudoku.VOCABULARY),
        hidden_size=size["hidden"],
        intermediate_size=size["dense"],
        num_hidden_layers=size["layers"],
        num_attention_heads=4,
        num_key_value_heads=2,
        num_global_key_value_heads=1,
        head_dim=32,
        global_head_dim=64,
        max_position_embeddings=4096,
        sliding_window=size["window"],
        layer_types=["sliding_attention", "full_attention"] * (size["layers"] // 2),
        num_experts=size["experts"],
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
    t = torch.rand(len(clean), 1, generator=generator)
    noise = torch.randint(0, vocabulary, clean.shape, generator=generator)
    canvas = torch.where(torch.rand(clean.shape, generator=generator) < t, noise, clean)
    positions = torch.arange(start, start + length)[None]
    # The rows are in random order, so that the first half is a random half.
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
def evaluate(model, pairs, steps):
    """Share of exactly solved puzzles, of right cells, and mean denoising steps."""
    model.eval()
    torch.manual_seed(5)
    prompts = torch.from_numpy(sudoku.prompt_ids(pairs[:, 0]))
    answers = torch.from_numpy(sudoku.answer_ids(pairs[:, 1]))
    out = model.generate(prompts, max_denoising_steps=steps)
    right = out.sequences[:, prompts.shape[1] :] == answers
    passes = answers.shape[1] / out.tokens_per_forward
    model.train()
    return right.all(1).float().mean().item(), right.float().mean().item(), passes.mean().item()


def pools(order, folder, size):
    """Training pool and held-out puzzles; the two come from differently seeded grids, and the held-out ones are removed
    from training by their text where the game is so small that they could recur."""
    file = folder / "pool.npz"
    if not file.exists():
        train = sudoku.make_pool(order, 20_000 if order == 2 else 4_000, size["fewest"], size["most"], 11)
        held = sudoku.make_pool(order, 512, size["fewest"], size["most"], 99)
        numpy.savez_compressed(file, train=train, held=held)
    data = numpy.load(file)
    return data["train"], data["held"]


def train(order, folder, minutes, batch, peak, draws):
    folder.mkdir(parents=True, exist_ok=True)
    train_pairs, held = pools(order, folder, SIZES[order])
    hidden_from_training = {pair[0].tobytes() for pair in held}
    model = make_model(order)
    parameters = [p for name, p in model.named_parameters() if "vision" not in name]
    print("parameters", sum(p.numel() for p in parameters), flush=True)
    optimizer = torch.optim.AdamW(parameters, lr=peak, betas=(0.95, 0.99), weight_decay=1e-4)
    step, spent = 0, 0.0
    state_file = folder / "state.pt"
    if state_file.exists():
        state = torch.load(state_file)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, spent = state["step"], state["spent"]
        print("resumed at step", step, "after", round(spent), "s", flush=True)
    model.train()

    def keep():
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "spent": spent},
            folder / "state.tmp",
        )
        (folder / "state.tmp").rename(state_file)

    last_report = last_look = time.time()
    sums = numpy.zeros(3)
    while spent < minutes * 60:
        began = time.time()
        rng = numpy.random.default_rng([order, step])
        generator = torch.Generator().manual_seed(order * 1_000_003 + step)
        pairs = sudoku.augment(train_pairs[rng.integers(0, len(train_pairs), batch)], order, rng)
        pairs = numpy.array([pair for pair in pairs if pair[0].tobytes() not in hidden_from_training])
        progress = spent / (minutes * 60)
        rate = peak * min(1, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        encoder_loss, decoder_loss = loss_of(model, pairs, generator, draws)
        optimizer.zero_grad()
        (encoder_loss + decoder_loss).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        step += 1
        spent += time.time() - began
        sums += encoder_loss.item(), decoder_loss.item(), 1
        if time.time() - last_report > 20:
            print(f"{spent:6.0f} s  step {step}  encoder {sums[0] / sums[2]:.4f}  decoder {sums[1] / sums[2]:.4f}", flush=True)
            sums[:] = 0
            last_report = time.time()
        if time.time() - last_look > 120:
            keep()
            exact, cells, passes = evaluate(model, held[:128], 16)
            print(f"        held-out: exact {exact:.3f}  cells {cells:.3f}  steps {passes:.1f}", flush=True)
            last_look = time.time()
    keep()
    for steps in (1, 8, 48):
        exact, cells, passes = evaluate(model, held, steps)
        print(f"held-out 512, at most {steps} steps: exact {exact:.4f}  cells {cells:.4f}  steps {passes:.2f}", flush=True)


def export(order, folder, target):
    model = make_model(order)
    model.load_state_dict(torch.load(folder / "state.pt")["model"])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", type=int, choices=(2, 3), required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--peak", type=float, default=1e-3)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--export", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.export:
        export(arguments.order, arguments.out, arguments.export)
    else:
        train(arguments.order, arguments.out, arguments.minutes, arguments.batch, arguments.peak, arguments.draws)


if __name__ == "__main__":
    main()
