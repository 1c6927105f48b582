#include "diffusion/canvas.h"

#include <algorithm>

#include "base/error.h"

namespace dgemma {

Canvas::Canvas(const DenoiseSettings& settings, std::vector<std::int32_t> ids)
    : settings_(settings), ids_(std::move(ids)), best_(ids_), accepted_(ids_.size(), 0) {
  settings_.validate();
}

void Canvas::advance(std::span<const RowPrediction> predictions, const Step& step, const StepNoise& noise) {
  DGEMMA_CHECK(!done_ && predictions.size() == ids_.size());
  predictions_.assign(predictions.begin(), predictions.end());
  step.apply(ids_, accepted_, predictions_, steps_left(), noise);
  ++steps_done_;

  float entropy_sum = 0;
  for (std::size_t i = 0; i < best_.size(); ++i) {
    best_[i] = predictions_[i].argmax;
    entropy_sum += predictions_[i].entropy;
  }
  const auto wanted = static_cast<std::size_t>(settings_.stability_threshold);
  const bool stable = history_.size() == wanted &&
                      std::all_of(history_.begin(), history_.end(), [&](const auto& past) { return past == best_; });
  const bool confident = entropy_sum / static_cast<float>(best_.size()) < settings_.confidence_threshold;
  history_.push_back(best_);
  if (history_.size() > wanted) history_.pop_front();
  done_ = (stable && confident) || steps_done_ == settings_.max_denoising_steps;
}

std::size_t first_stop(std::span<const std::int32_t> ids, std::span<const std::int32_t> stops) {
  return static_cast<std::size_t>(std::find_first_of(ids.begin(), ids.end(), stops.begin(), stops.end()) - ids.begin());
}

}  // namespace dgemma
