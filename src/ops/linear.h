// Matrix products with stored weights, and the lookup of weight rows.
#pragma once

#include <cstdint>
#include <span>

#include "ops/context.h"
#include "tensor/view.h"

namespace dgemma {

// Products of a stored matrix with rounded activations, as the context's precision and the stored format have them;
// empty when the activations are to be f32.
class RoundedProduct {
 public:
  RoundedProduct() = default;
  RoundedProduct(const Context& c, WeightView weight);
  explicit operator bool() const { return int8_ != nullptr || bf16_ != nullptr; }

  // What `rows` rounded activations take, a multiple of 64.
  std::int64_t bytes(std::int64_t rows) const;
  // Rounds rows begin .. end - 1 of x into their places of `rounded`, which is as large as all rows take; begin is a
  // multiple of kRowGroup.
  static constexpr std::int64_t kRowGroup = kBf16Rows;
  void round(View x, std::int64_t begin, std::int64_t end, std::byte* rounded) const;
  // Row r of `to`, which is as large as so many rows take, becomes row rows[r] of the `count` rounded ones in `from`.
  void gather(const std::byte* from, std::int64_t count, std::span<const std::int32_t> rows, std::byte* to) const;
  // out[rows, count] = x w^T with weight rows first ..; count <= kPanelRows.
  void multiply(const std::byte* rounded, std::int64_t rows, std::int64_t first, std::int64_t count, float* out,
                std::int64_t stride) const;

 private:
  ActivationBlock* blocks(const std::byte* rounded, std::int64_t rows) const;

  const KernelTable* kernels_ = nullptr;
  WeightView weight_;
  Int8Gemm int8_ = nullptr;
  Bf16Gemm bf16_ = nullptr;
};

// out[rows, weight.rows] = x[rows, weight.cols] weight^T. Any stored format; activations as the context's precision
// says, sums in f32.
void linear(Context& c, View out, View x, WeightView weight);

// One product of a group: out = x weight^T. Groups run side by side, so that many narrow products (experts) fill all
// threads.
struct LinearGroup {
  View out;
  View x;
  WeightView weight;
  // The rows of x to take, in this order; empty takes all. Groups that say so share one x and one stored format, and a
  // row is rounded once for all of them.
  std::span<const std::int32_t> rows{};
};
void linear_groups(Context& c, std::span<const LinearGroup> groups);

// out[i] = table[ids[i]] * scale. An id outside the table is an internal error: callers validate.
void embed(Context& c, View out, std::span<const std::int32_t> ids, WeightView table, float scale);

// Rows begin .. begin+count-1 of a stored matrix as f32, in place when they are stored so, else unpacked to `scratch`
// (count * cols floats).
const float* weight_rows_f32(WeightView weight, std::int64_t begin, std::int64_t count, float* scratch);

}  // namespace dgemma
