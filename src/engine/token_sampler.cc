#include "engine/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace dgemma {

void TokenSampling::validate() const {
  if (!(temperature >= 0 && temperature <= 100)) bad_input("temperature must be 0 .. 100, found {}", temperature);
  if (top_k < 0) bad_input("top_k must be at least 0, found {}", top_k);
  if (!(top_p > 0 && top_p <= 1)) bad_input("top_p must be above 0 and at most 1, found {}", top_p);
  if (!(min_p >= 0 && min_p <= 1)) bad_input("min_p must be 0 .. 1, found {}", min_p);
}

std::int32_t sample_token(std::span<const float> logits, const TokenSampling& sampling, double uniform) {
  DGEMMA_CHECK(!logits.empty());
  const auto best = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());

  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  if (sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < order.size()) {
    order.resize(static_cast<std::size_t>(sampling.top_k));
  }
  std::vector<double> weights(order.size());
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    weights[i] = std::exp((double{logits[order[i]]} - *best) / sampling.temperature);
    sum += weights[i];
  }
  std::size_t kept = 0;
  double mass = 0;
  while (kept < order.size() && (kept == 0 || (mass < sampling.top_p * sum && weights[kept] >= sampling.min_p))) {
    mass += weights[kept++];
  }
  double left = uniform * mass;
  std::size_t pick = 0;
  while (pick + 1 < kept && left >= weights[pick]) left -= weights[pick++];
  return order[pick];
}

}  // namespace dgemma
