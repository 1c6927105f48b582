// Element and block formats of stored tensors. Ids and block sizes are GGUF's (ggml type table), which is the larger
// set; safetensors dtypes map onto it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dgemma {

enum class DType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
  mxfp4 = 39,
  nvfp4 = 40,
};

// Elements in a block and bytes of a block: f32 is {1, 4}, q4_k is {256, 144}.
struct BlockShape {
  std::int64_t elements;
  std::int64_t bytes;
};

BlockShape block_shape(DType dtype);

// "F32", "Q4_K", ...: ggml's spelling.
std::string_view dtype_name(DType dtype);

// The dtype of a ggml type id, or nothing when the id is unknown, retired or not supported.
std::optional<DType> dtype_from_ggml(std::uint32_t id);

// Bytes of a row of `elements`; elements must be a multiple of the block.
inline std::int64_t row_bytes(DType dtype, std::int64_t elements) {
  const BlockShape shape = block_shape(dtype);
  return elements / shape.elements * shape.bytes;
}

}  // namespace dgemma
