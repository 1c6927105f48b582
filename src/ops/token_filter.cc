#include "ops/token_filter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"

namespace dgemma {

void TokenFilter::validate() const {
  if (top_k < 0) bad_input("top_k must be at least 0, found {}", top_k);
  if (!(top_p > 0 && top_p <= 1)) bad_input("top_p must be above 0 and at most 1, found {}", top_p);
  if (!(min_p >= 0 && min_p <= 1)) bad_input("min_p must be 0 .. 1, found {}", min_p);
}

float keep_threshold(std::span<const float> logits, const TokenFilter& filter) {
  DGEMMA_CHECK(!logits.empty());
  const float largest = *std::max_element(logits.begin(), logits.end());
  float threshold = -std::numeric_limits<float>::infinity();
  std::vector<float> sorted(logits.begin(), logits.end());
  const std::size_t k =
      filter.top_k > 0 ? std::min(sorted.size(), static_cast<std::size_t>(filter.top_k)) : sorted.size();
  if (k < sorted.size()) {
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1), sorted.end(),
                     std::greater<>());
    sorted.resize(k);
    threshold = sorted[k - 1];
  }
  if (filter.top_p < 1) {
    double sum = 0;
    for (const float y : sorted) sum += std::exp(double{y} - largest);
    // The kept set is small as a rule: sort only as many of the largest as it takes.
    double mass = 0;
    std::size_t done = 0;
    for (std::size_t part = 256; mass < filter.top_p * sum && done < sorted.size(); part *= 8) {
      const std::size_t end = std::min(sorted.size(), done + part);
      const auto begin_at = sorted.begin() + static_cast<std::ptrdiff_t>(done);
      std::partial_sort(begin_at, sorted.begin() + static_cast<std::ptrdiff_t>(end), sorted.end(), std::greater<>());
      while (done < end && mass < filter.top_p * sum) mass += std::exp(double{sorted[done++]} - largest);
    }
    threshold = std::max(threshold, sorted[done - 1]);
  }
  if (filter.min_p > 0) threshold = std::max(threshold, largest + std::log(filter.min_p));
  return threshold;
}

}  // namespace dgemma
