// Row-wise ops: norms, rotation, activation, sums.
#pragma once

#include <cstdint>
#include <span>

#include "ops/context.h"
#include "tensor/view.h"

namespace dgemma {

// out = x / sqrt(mean(x^2) + eps) * weight, over groups of `weight size` columns (a whole row, or each head). An empty
// weight means all ones and needs `group` columns stated. All in f32. out may be x.
void rms_norm(Context& c, View out, View x, std::span<const float> weight, float eps);
void rms_norm_unit(Context& c, View out, View x, std::int64_t group, float eps);

// Rotates each head of x [rows, heads * head_dim] in place: component i pairs with i + head_dim / 2, by the angle
// positions[row] * frequencies[i], i < head_dim / 2; angles in f32 as the reference computes them.
void rope(Context& c, View x, std::span<const std::int32_t> positions, std::span<const float> frequencies);

// out = gelu_tanh(gate) * up. out may be gate.
void geglu(Context& c, View out, View gate, View up);

// out = a + b.
void add(Context& c, View out, View a, View b);

// x[i] *= scales[i].
void scale_rows(Context& c, View x, std::span<const float> scales);

}  // namespace dgemma
