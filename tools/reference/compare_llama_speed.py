"""Rows of one GGUF file through llama.cpp (PyPI llama-cpp-python) and through bench_rows, in turns, so that both meet the same
machine. llama.cpp computes the layers alone: no row asks for logits. bench_rows adds the head and the sampler for every row.
Prints the medians and their ratio; exit code 1 below --least.

    python tools/reference/compare_llama_speed.py MODEL.gguf BENCH_ROWS [--rows 256] [--threads 2] [--repeats 5] [--least RATIO]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import llama_cpp

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("bench_rows")
parser.add_argument("--rows", type=int, default=256)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--repeats", type=int, default=5)
parser.add_argument("--least", type=float, default=0, help="least ratio that is good")
arguments = parser.parse_args()
rows = arguments.rows


@llama_cpp.llama_log_callback
def keep_errors(level, text, _):
    if level == 4:  # GGML_LOG_LEVEL_ERROR
        sys.stderr.write(text.decode(errors="replace"))


llama_cpp.llama_log_set(keep_errors, None)
llama_cpp.llama_backend_init()
model = llama_cpp.llama_model_load_from_file(arguments.model.encode(), llama_cpp.llama_model_default_params())
if not model:
    raise SystemExit(f"llama.cpp cannot load {arguments.model}")
settings = llama_cpp.llama_context_default_params()
settings.n_ctx = settings.n_batch = settings.n_ubatch = rows
settings.n_threads = settings.n_threads_batch = arguments.threads
context = llama_cpp.llama_init_from_model(model, settings)
if not context:
    raise SystemExit("llama.cpp cannot make a context")
vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
batch = llama_cpp.llama_batch_init(rows, 0, 1)
batch.n_tokens = rows
for i in range(rows):
    batch.token[i] = (i * 7919 + 1000) % vocabulary  # spread over the vocabulary; any ids do
    batch.pos[i] = i
    batch.n_seq_id[i] = 1
    batch.seq_id[i][0] = 0
    batch.logits[i] = 0


def their_pass():
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
    begin = time.perf_counter()
    if llama_cpp.llama_decode(context, batch) != 0:
        raise SystemExit("llama_decode failed")
    llama_cpp.llama_synchronize(context)
    return time.perf_counter() - begin


their_pass()
ours = subprocess.Popen(
    [arguments.bench_rows, "--model", arguments.model, "--rows", str(rows), "--threads", str(arguments.threads),
     "--repeats", str(arguments.repeats), "--wait"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
theirs = []
result = None
for line in ours.stdout:
    if line == "ready\n":
        theirs.append(their_pass())
        ours.stdin.write("go\n")
        ours.stdin.flush()
    elif line.startswith("RESULT "):
        result = json.loads(line.removeprefix("RESULT "))
if ours.wait() != 0 or result is None:
    raise SystemExit("bench_rows failed")

their_median, whole, layers = (statistics.median(times) for times in (theirs, result["whole_s"], result["layers_s"]))
for name, times in (("llama.cpp, layers alone", theirs), ("dgemma, layers alone", result["layers_s"]),
                    ("dgemma, with head and sampler", result["whole_s"])):
    print(f"{name:31} {statistics.median(times):8.3f} s  ({' '.join(f'{value:.3f}' for value in times)})")
print(f"llama-cpp-python {llama_cpp.__version__}, {rows} rows, {arguments.threads} threads, load average {os.getloadavg()[0]:.1f}: "
      f"dgemma is {their_median / whole:.2f} times as fast with its head and sampler, {their_median / layers:.2f} times without")
sys.exit(0 if their_median / whole >= arguments.least else 1)
