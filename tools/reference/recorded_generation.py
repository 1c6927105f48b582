"""Runs Transformers' own generate() with all randomness replaced by counter-based numbers, and records every step.

The random numbers are those of src/base/random.h, Philox4x32-10 as published (Salmon et al., SC 2011), under streams
named here; they are also stored, so that a reader needs no random generator.
"""

import contextlib

import torch
from transformers.models.diffusion_gemma import generation_diffusion_gemma as generation

TILE = 256  # vocabulary entries that share one uniform number


def philox(counter, key):
    """One Philox4x32-10 block of four 32-bit words."""
    mask = 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = ((b >> 32) ^ counter[1] ^ key[0], b & mask, (a >> 32) ^ counter[3] ^ key[1], a & mask)
        key = ((key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask)
    return counter


def bits(seed, stream, index):
    mask = 0xFFFFFFFF
    words = philox((index & mask, index >> 32, stream & mask, stream >> 32), (seed & mask, seed >> 32))
    return words[1] << 32 | words[0]


def uniform(seed, stream, index):
    return ((bits(seed, stream, index) >> 12) + 0.5) * 2.0**-52


def below(seed, stream, index, bound):
    return bits(seed, stream, index) * bound >> 64


def draw(probabilities, uniforms):
    """One id from a row of probabilities: each tile in turn replaces the candidate with probability
    (its mass) / (mass so far); the same number, stretched, then picks within the tile."""
    p = probabilities.double()
    total, picked = 0.0, 0
    for tile, u in enumerate(uniforms):
        part = p[tile * TILE : (tile + 1) * TILE]
        mass = float(part.sum())
        total += mass
        if u * total < mass:
            picked = tile * TILE + min(int((part.cumsum(0) <= u * total).sum()), len(part) - 1)
    return picked


class Recorder:
    """Stands in for torch.multinomial and the sampler's random ids; keeps what every step did, [steps, rows, ...]."""

    def __init__(self, seeds, vocabulary):
        self.seeds, self.vocabulary = seeds, vocabulary
        self.canvas, self.step = -1, 0
        self.steps = []
        self.start = []

    def noise_ids(self, batch, length, stream):
        return torch.tensor([[below(self.seeds[b], stream, i, self.vocabulary) for i in range(length)] for b in range(batch)])

    def sample_stream(self):
        return self.canvas << 32 | self.step << 1

    @contextlib.contextmanager
    def active(self, model):
        sampler = generation.EntropyBoundSampler
        kept = (torch.multinomial, sampler.initialize_canvas, sampler.accept_canvas, type(model)._denoising_step,
                type(model)._prepare_denoiser_inputs)
        recorder = self

        def multinomial(probabilities, num_samples):
            rows = probabilities.shape[0] // len(recorder.seeds)
            out, stored = [], []
            for r in range(probabilities.shape[0]):
                seed, row = recorder.seeds[r // rows], r % rows
                tiles = -(-probabilities.shape[1] // TILE)
                u = [uniform(seed, recorder.sample_stream(), row << 32 | tile) for tile in range(tiles)]
                stored.append(u)
                out.append(draw(probabilities[r], u))
            recorder.now["uniforms"] = torch.tensor(stored, dtype=torch.float64).reshape(len(recorder.seeds), rows, -1)
            return torch.tensor(out)[:, None]

        def initialize_canvas(self, batch_size, device):
            # A new canvas is stream 0xffffffff of its canvas; renoising is the odd stream of its step.
            if recorder.starting:
                return recorder.noise_ids(batch_size, self.canvas_length, recorder.canvas << 32 | 0xFFFFFFFF)
            ids = recorder.noise_ids(batch_size, self.canvas_length, recorder.sample_stream() | 1)
            recorder.now["noise_ids"] = ids
            return ids

        def accept_canvas(self, current, denoiser, logits, step):
            result = kept[2](self, current, denoiser, logits, step)
            recorder.now.update(
                sampled=denoiser.clone(),
                entropies=torch.distributions.Categorical(logits=logits).entropy(),
                accepted=self.accepted_token_mask.clone(),
                argmax=logits.argmax(-1),
            )
            return result

        def prepare(self, *args, **kwargs):
            recorder.canvas += 1
            recorder.step, recorder.starting = 0, True
            result = kept[4](self, *args, **kwargs)
            recorder.starting = False
            return result

        def denoising_step(self, *args, **kwargs):
            recorder.now = {"canvas": kwargs["current_canvas"].clone()}
            before = kwargs["finished_denoising"].clone()
            result = kept[3](self, *args, **kwargs)
            recorder.now.update(
                next_canvas=result[0].clone(), best=result[1].clone(), done=result[3].clone(), frozen=before
            )
            batch = len(recorder.seeds)
            recorder.now["canvas_index"] = torch.full((batch,), recorder.canvas)
            recorder.now["remaining"] = torch.full((batch,), kwargs["cur_step"])
            recorder.steps.append(recorder.now)
            recorder.step += 1
            return result

        torch.multinomial = multinomial
        sampler.initialize_canvas, sampler.accept_canvas = initialize_canvas, accept_canvas
        type(model)._denoising_step, type(model)._prepare_denoiser_inputs = denoising_step, prepare
        try:
            yield self
        finally:
            torch.multinomial = kept[0]
            sampler.initialize_canvas, sampler.accept_canvas = kept[1], kept[2]
            type(model)._denoising_step, type(model)._prepare_denoiser_inputs = kept[3], kept[4]

    def tensors(self, row, prefix=""):
        """Everything that happened to one row of the batch, [steps, ...]."""
        out = {}
        for name in self.steps[0]:
            value = torch.stack([step[name][row] for step in self.steps])
            if value.dtype != torch.float64:
                value = value.float() if value.is_floating_point() else value.int()
            out[prefix + name] = value
        return out
