// One canvas on its way from noise to text: working ids, best guess, stopping (spec architecture.md 3.3, 3.4). Knows no
// transformer, no cache and no text.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "diffusion/sampler.h"
#include "diffusion/schedule.h"

namespace dgemma {

class Canvas {
 public:
  // `ids`: the first working canvas, uniform random ids as a rule.
  Canvas(const DenoiseSettings& settings, std::vector<std::int32_t> ids);

  std::span<const std::int32_t> ids() const { return ids_; }    // what the decoder reads next
  std::span<const std::int32_t> best() const { return best_; }  // argmax of the last step: what is committed
  std::span<const std::uint8_t> accepted() const { return accepted_; }
  std::span<const RowPrediction> predictions() const { return predictions_; }  // of the last step
  int steps_done() const { return steps_done_; }
  int steps_left() const { return settings_.max_denoising_steps - steps_done_; }
  bool done() const { return done_; }
  float temperature() const { return dgemma::temperature(settings_, steps_left()); }

  // Takes the head's predictions for ids(): next working canvas, best guess, and whether denoising is over: when the
  // best guess equals those of the last `stability_threshold` steps and the mean entropy is below the confidence
  // threshold, or no step is left.
  void advance(std::span<const RowPrediction> predictions, const Step& step, const StepNoise& noise);

 private:
  DenoiseSettings settings_;
  std::vector<std::int32_t> ids_, best_;
  std::vector<std::uint8_t> accepted_;
  std::vector<RowPrediction> predictions_;
  std::deque<std::vector<std::int32_t>> history_;  // best guesses of the last steps, oldest first
  int steps_done_ = 0;
  bool done_ = false;
};

// Index of the first id of `ids` that is in `stops`, or ids.size().
std::size_t first_stop(std::span<const std::int32_t> ids, std::span<const std::int32_t> stops);

}  // namespace dgemma
