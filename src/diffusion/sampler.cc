#include "diffusion/sampler.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace dgemma {
namespace {

class EntropyBoundStep : public Step {
 public:
  explicit EntropyBoundStep(float bound) : bound_(bound) {}

  void apply(std::span<std::int32_t> canvas, std::span<std::uint8_t> accepted,
             std::span<const RowPrediction> predictions, int, const StepNoise& noise) const override {
    DGEMMA_CHECK(canvas.size() == predictions.size() && accepted.size() == canvas.size());
    std::vector<std::size_t> order(canvas.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return predictions[a].entropy < predictions[b].entropy; });
    // The reference compares the inclusive f32 prefix sum minus the position's own entropy; an exclusive sum may differ
    // in the last place.
    float sum = 0;
    for (const std::size_t i : order) {
      sum += predictions[i].entropy;
      accepted[i] = sum - predictions[i].entropy <= bound_ ? 1 : 0;
      canvas[i] = accepted[i] != 0 ? predictions[i].sample : noise.token(static_cast<std::int64_t>(i));
    }
  }

 private:
  float bound_;
};

class DiscreteEulerStep : public Step {
 public:
  void apply(std::span<std::int32_t> canvas, std::span<std::uint8_t> accepted,
             std::span<const RowPrediction> predictions, int steps_left, const StepNoise& noise) const override {
    DGEMMA_CHECK(canvas.size() == predictions.size() && accepted.size() == canvas.size() && steps_left >= 1);
    const double jump = 1.0 / steps_left;
    for (std::size_t i = 0; i < canvas.size(); ++i) {
      accepted[i] = noise.uniform(static_cast<std::int64_t>(i)) < jump ? 1 : 0;
      if (accepted[i] != 0) canvas[i] = predictions[i].sample;
    }
  }
};

}  // namespace

std::unique_ptr<Step> discrete_euler_step() { return std::make_unique<DiscreteEulerStep>(); }

std::unique_ptr<Step> entropy_bound_step(float bound) { return std::make_unique<EntropyBoundStep>(bound); }

}  // namespace dgemma
