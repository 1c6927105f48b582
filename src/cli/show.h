// What generating subcommands print besides the answer: the canvas as it is denoised, the figures at the end.
#pragma once

#include <cstdint>
#include <string>

#include "diffusion/canvas.h"
#include "diffusion/metrics.h"
#include "text/tokenizer.h"

namespace dgemma {

struct Timing {
  std::int64_t prompt_tokens = 0, tokens = 0;
  double prompt_seconds = 0, generation_seconds = 0;
};

// One line a step on standard error: the best guess of every position; colour, on a terminal, is confidence from red to
// green.
void show_canvas(const Canvas& canvas, const Tokenizer& tokenizer);

// One line on standard error, in words or as JSON.
void show_metrics(const Metrics& metrics, const Timing& timing, bool json);

}  // namespace dgemma
