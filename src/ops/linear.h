// Matrix products with stored weights, and the lookup of weight rows.
#pragma once

#include <cstdint>
#include <span>

#include "ops/context.h"
#include "tensor/view.h"

namespace dgemma {

// Activations [rows, cols] in 8 bits, as the kernels of a block format want them; they live in the Context until the
// next product.
struct Int8Rows {
  const std::int8_t* codes = nullptr;
  const ActivationBlock* blocks = nullptr;
};

// The kernel for products of `weight` with 8-bit activations, or null when they are to be f32: the context says so, or
// the weight is stored in a float format.
Int8Gemm int8_kernel(const Context& c, WeightView weight);
Int8Rows int8_rows(Context& c, View x);

// out[rows, weight.rows] = x[rows, weight.cols] weight^T. Any stored format; activations as the context's precision
// says, sums in f32.
void linear(Context& c, View out, View x, WeightView weight);

// One product of a group: out = x weight^T. Groups run side by side, so that many narrow products (experts) fill all
// threads.
struct LinearGroup {
  View out;
  View x;
  WeightView weight;
};
void linear_groups(Context& c, std::span<const LinearGroup> groups);

// out[i] = table[ids[i]] * scale. An id outside the table is an internal error: callers validate.
void embed(Context& c, View out, std::span<const std::int32_t> ids, WeightView table, float scale);

// Rows begin .. begin+count-1 of a stored matrix as f32, in place when they are stored so, else unpacked to `scratch`
// (count * cols floats).
const float* weight_rows_f32(WeightView weight, std::int64_t begin, std::int64_t count, float* scratch);

}  // namespace dgemma
