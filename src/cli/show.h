// What subcommands print besides the answer: progress, the canvas as it is denoised, the figures at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "diffusion/canvas.h"
#include "diffusion/metrics.h"
#include "engine/engine.h"
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

// A line on standard error that says how far long work is: rewritten in place on a terminal and erased at the end;
// elsewhere a line every five seconds, and none for work that takes less than a second.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  void erase();

 private:
  bool terminal_, written_ = false;
  Stopwatch watch_;
  double next_ = 1;  // seconds at which a pipe gets its next line
};

// Engine::open, with a ProgressLine.
Engine open_model(const std::string& path);

struct Timing {
  std::int64_t prompt_tokens = 0, tokens = 0;
  double prompt_seconds = 0, generation_seconds = 0;
};

// One line a step on standard error: the best guess of every position; colour, on a terminal, is confidence from red to
// green.
void show_canvas(const Canvas& canvas, const Tokenizer& tokenizer);

// On standard error: two lines in words, or one of JSON.
void show_metrics(const Metrics& metrics, const Work& work, const Timing& timing, bool json);

}  // namespace dgemma
