// Draws the next token in autoregressive mode.
#pragma once

#include <cstdint>
#include <span>

#include "ops/token_filter.h"

namespace dgemma {

// An id drawn from softmax(logits / temperature) restricted to what the filter keeps, with one uniform number in (0,
// 1); ids in ascending order in the inverse transform. Temperature 0 gives the most likely id, the lowest on ties.
std::int32_t sample_token(std::span<const float> logits, float temperature, const TokenFilter& filter, double uniform);

}  // namespace dgemma
