// A record of every denoising step, written as JSON or as one self-contained HTML page (report figures 15 and 22).
// Knows no tokenizer: the text of an id is asked of the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "diffusion/canvas.h"

namespace dgemma {

// What one step left behind; all vectors have one entry a canvas position.
struct TraceStep {
  std::int64_t canvas = 0;  // index of the canvas, from 0
  int step = 0;             // within the canvas, from 1
  bool done = false;        // the canvas ended with this step
  std::vector<std::int32_t> ids, best;
  std::vector<std::uint8_t> accepted;
  std::vector<float> entropy, confidence;  // nats; largest probability
};

class Trace {
 public:
  using TokenText = std::function<std::string(std::int32_t id)>;  // any bytes; those that are not UTF-8 are replaced

  // Call after each Canvas::advance.
  void record(std::int64_t canvas_index, const Canvas& canvas);
  const std::vector<TraceStep>& steps() const { return steps_; }

  // {"steps": [{"canvas", "step", "done", "ids", "best", "text" (of best), "accepted" (0 or 1), "entropy",
  // "confidence"}, ...]}; numbers that are not finite are null.
  std::string json(const TokenText& text) const;

  // A row a step: the best guess of every position, coloured by confidence, accepted ones underlined; ids and figures
  // on hover. No script and no request; dark and light. `title` is plain text.
  std::string html(std::string_view title, const TokenText& text) const;

 private:
  std::vector<TraceStep> steps_;
};

}  // namespace dgemma
