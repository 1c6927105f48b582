// How a denoising step turns the head's predictions into the next working canvas: the part that research replaces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ops/head.h"

namespace dgemma {

// The random numbers of one step: uniform ids for positions that are noised again, and uniforms in (0, 1).
struct StepNoise {
  std::function<std::int32_t(std::int64_t position)> token;
  std::function<double(std::int64_t position)> uniform;
};

class Step {
 public:
  virtual ~Step() = default;
  // `canvas` holds the ids that the predictions were made from and becomes the next working canvas; accepted[i] says
  // whether position i took a sampled token. `steps_left` counts this step.
  virtual void apply(std::span<std::int32_t> canvas, std::span<std::uint8_t> accepted,
                     std::span<const RowPrediction> predictions, int steps_left, const StepNoise& noise) const = 0;
};

// The report's sampler: positions in order of entropy are accepted while the entropies before them sum to at most
// `bound` nats; the others become uniform random ids. There is no memory: every position is decided anew at every step.
std::unique_ptr<Step> entropy_bound_step(float bound);

// The discrete Euler update of flow matching (report, footnote 2): x' ~ (1 - r) delta(x) + r p with
// r = dt |kappa'_t| / (1 - kappa_t). For kappa_t = 1 - t, t = steps_left / N and dt = 1 / N that is r = 1 / steps_left:
// each position takes its sample with that probability, else keeps its id; at the last step all take it.
std::unique_ptr<Step> discrete_euler_step();

}  // namespace dgemma
