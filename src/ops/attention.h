// Softmax attention over key ranges. There are no mask tensors: what a query row sees is one contiguous range of the
// keys.
#pragma once

#include <cstdint>
#include <span>

#include "ops/context.h"
#include "tensor/view.h"

namespace dgemma {

// A run of keys and values, [count, kv_heads * head_dim] each, in the order of their positions.
struct KeyPiece {
  View k;
  View v;
};

// Query row i of the segment sees keys first[i] .. last[i]-1, counted through all pieces in order.
struct KeyRange {
  std::int64_t first;
  std::int64_t last;
};

// out[rows, heads * head_dim]: for each row and head softmax(scale * q k^T) v; query head h uses key head h / (heads /
// kv_heads). The result of a row depends on its own range only, not on how its keys are cut into pieces. In bfloat16
// where the context says so (then `first_position`, the position of key 0, keeps the order of sums that of positions).
void attention(Context& c, View out, View q, std::span<const KeyPiece> pieces, std::int64_t first_position,
               std::span<const KeyRange> ranges, std::int64_t head_dim, float scale);

// The same in bfloat16: queries, keys, values and unnormalised probabilities are rounded, sums are f32. head_dim is a
// multiple of 32. Operands as attention() has checked them.
void attention_bf16(Context& c, View out, View q, std::span<const KeyPiece> pieces, std::int64_t first_position,
                    std::span<const KeyRange> ranges, std::int64_t head_dim, float scale);

}  // namespace dgemma
