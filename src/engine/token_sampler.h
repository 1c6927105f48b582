// Draws the next token in autoregressive mode.
#pragma once

#include <cstdint>
#include <span>

namespace dgemma {

struct TokenSampling {
  float temperature = 0;   // 0: the most likely token
  std::int32_t top_k = 0;  // keep the k most likely; 0: all
  float top_p = 1;         // keep the smallest set whose probability reaches top_p
  float min_p = 0;         // keep tokens of at least min_p times the largest probability

  // Throws bad_input that names the setting, its range and what was given.
  void validate() const;
};

// An id drawn from softmax(logits / temperature) after top-k, top-p and min-p, in this order, with one uniform number
// in (0, 1). The most likely tokens come first in the inverse transform, ties by lower id.
std::int32_t sample_token(std::span<const float> logits, const TokenSampling& sampling, double uniform);

}  // namespace dgemma
