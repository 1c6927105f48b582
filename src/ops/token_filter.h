// Which tokens of a distribution may be drawn: top-k, top-p and min-p, in this order.
#pragma once

#include <cstdint>
#include <span>

namespace dgemma {

struct TokenFilter {
  std::int32_t top_k = 0;  // keep the k most likely; 0: all
  float top_p = 1;         // of those, keep the likeliest that together reach this share
  float min_p = 0;         // of those, keep tokens of at least this share of the likeliest

  bool active() const { return top_k > 0 || top_p < 1 || min_p > 0; }
  // Throws bad_input that names the setting, its range and what was given.
  void validate() const;
};

// The smallest logit that is kept; logits are already divided by the temperature. Tokens that tie with it are kept too.
float keep_threshold(std::span<const float> logits, const TokenFilter& filter);

}  // namespace dgemma
