// What generating subcommands print besides the answer: the canvas as it is denoised, the figures at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "diffusion/canvas.h"
#include "diffusion/metrics.h"
#include "text/tokenizer.h"

namespace dgemma {

// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

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
