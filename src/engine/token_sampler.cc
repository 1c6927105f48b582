#include "engine/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace dgemma {

std::int32_t sample_token(std::span<const float> logits, float temperature, const TokenFilter& filter, double uniform) {
  DGEMMA_CHECK(!logits.empty());
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<std::int32_t>(best - logits.begin());

  std::vector<float> scaled(logits.size());
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = logits[i] / temperature;
  const float largest = *best / temperature, threshold = keep_threshold(scaled, filter);
  double mass = 0;
  for (const float y : scaled) mass += y >= threshold ? std::exp(double{y} - largest) : 0.0;
  double left = uniform * mass;
  std::size_t last_kept = 0;
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (scaled[i] < threshold) continue;
    last_kept = i;
    left -= std::exp(double{scaled[i]} - largest);
    if (left < 0) break;
  }
  return static_cast<std::int32_t>(last_kept);
}

}  // namespace dgemma
