"""Log probabilities that `dgemma perplexity` wrote against llama.cpp's (PyPI llama-cpp-python) on the same file, and the greedy
continuation of one prompt. Where weights are quantised, llama.cpp rounds activations to 8 bits, and so does dgemma with
--precision int8, its default, each in its own way; the same weights unpacked to F32 (--precision f32) tell that rounding from a
fault. scripts/real-model --compare runs all three. How fast the two are: scripts/compare-llama.

    python tools/reference/compare_llama.py MODEL.gguf LOG_PROBABILITIES CONTINUATION
"""

import sys

import llama_cpp
import numpy as np

WINDOW = 512
PROMPT = "The capital of France is"
BOS = 2

model_path, log_path, continuation_path = sys.argv[1:4]
model = llama_cpp.Llama(model_path, n_ctx=WINDOW, logits_all=True, n_batch=WINDOW, verbose=False)
pairs = [line.split() for line in open(log_path)]
ids = [int(pair[0]) for pair in pairs]
ours = np.array([float(pair[1]) for pair in pairs])

theirs = []
for begin in range(0, len(ids), WINDOW - 1):
    part = [BOS, *ids[begin : begin + WINDOW - 1]]
    model.reset()
    model.eval(part)
    logits = np.array(model.scores[: len(part)], dtype=np.float64)
    largest = logits.max(axis=1)
    log_sum = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    theirs += [logits[i, part[i + 1]] - log_sum[i] for i in range(len(part) - 1)]
theirs = np.array(theirs)

ours_perplexity, theirs_perplexity = np.exp(-ours.mean()), np.exp(-theirs.mean())
print(f"{len(ids)} tokens: perplexity dgemma {ours_perplexity:.4f}, llama.cpp {theirs_perplexity:.4f}, "
      f"difference {100 * (ours_perplexity / theirs_perplexity - 1):+.3f} %")
print(f"log probability difference: mean {np.abs(ours - theirs).mean():.4f}, largest {np.abs(ours - theirs).max():.4f}")

found = open(continuation_path, errors="replace").read().rstrip("\n")
model.reset()
prompt = model.tokenize(PROMPT.encode())
theirs_ids = []
for token in model.generate(prompt, temp=0, repeat_penalty=1.0):
    theirs_ids.append(token)
    if len(theirs_ids) == 48:
        break
theirs_text = model.detokenize(theirs_ids).decode(errors="replace")
print("greedy continuation:",
      "equal" if theirs_text == found else f"differs\n  dgemma    {found!r}\n  llama.cpp {theirs_text!r}")
sys.exit(0 if abs(ours_perplexity / theirs_perplexity - 1) < 0.005 else 1)
