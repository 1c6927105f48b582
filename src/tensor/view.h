// Rank-2, row-major, non-owning views, passed by value. Who owns the memory is not their business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"

namespace dgemma {

// Activations: float32 [rows, cols]; stride counts elements between rows. An empty view means "absent".
struct View {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  explicit operator bool() const { return data != nullptr; }
  float* row(std::int64_t i) const { return data + i * stride; }
  View slice(std::int64_t begin, std::int64_t count) const {
    DGEMMA_CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    return {data + begin * stride, count, cols, stride};
  }
};

// A stored matrix [rows, cols] in any element or block format, read only; rows lie one after the other.
struct WeightView {
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType dtype = DType::f32;

  explicit operator bool() const { return data != nullptr; }
  std::int64_t row_size_bytes() const { return row_bytes(dtype, cols); }
  const std::byte* row(std::int64_t i) const { return data + i * row_size_bytes(); }
  WeightView slice(std::int64_t begin, std::int64_t count) const {
    DGEMMA_CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    return {row(begin), count, cols, dtype};
  }
};

// The owner of one activation matrix. Growing keeps the memory; shrinking only changes the view.
class Matrix {
 public:
  View reshape(std::int64_t rows, std::int64_t cols) {
    if (static_cast<std::size_t>(rows * cols) > storage_.size()) storage_.resize(static_cast<std::size_t>(rows * cols));
    return {storage_.data(), rows, cols, cols};
  }

 private:
  std::vector<float> storage_;
};

}  // namespace dgemma
