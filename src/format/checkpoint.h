// A checkpoint as the loader sees it: named tensors in mapped files, and metadata. Knows no model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace dgemma {

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // outermost first, as Hugging Face writes it: [out, in]; the last one is contiguous
  std::span<const std::byte> bytes;  // inside the mapped file; valid while the Checkpoint lives
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  // All tensors, in file order.
  virtual std::span<const TensorInfo> tensors() const = 0;
  // The tensor of that name, or null.
  virtual const TensorInfo* find(std::string_view name) const = 0;
};

}  // namespace dgemma
