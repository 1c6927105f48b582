#include "ops/attention.h"

#include <algorithm>
#include <vector>

namespace dgemma {
namespace {

// Query rows that share one sweep over the keys.
constexpr std::int64_t kQueryTile = 24;

// One tile of query rows, one head: scores of the union of the rows' ranges, softmax of each row's own range, weighted
// values.
void attend_tile(Context& c, float* scores, View out, View q, std::span<const KeyPiece> pieces,
                 std::span<const KeyRange> ranges, std::int64_t query_column, std::int64_t key_column,
                 std::int64_t head_dim, float scale) {
  const KernelTable& kernels = c.kernels();
  std::int64_t low = ranges[0].first, high = ranges[0].last;
  for (const KeyRange& range : ranges) {
    low = std::min(low, range.first);
    high = std::max(high, range.last);
  }
  const std::int64_t width = high - low;

  // Calls body(piece, first row in the piece, count, column in `scores`) over the pieces that meet low .. high-1.
  const auto for_pieces = [&](const auto& body) {
    std::int64_t start = 0;
    for (const KeyPiece& piece : pieces) {
      const std::int64_t begin = std::max(low, start), end = std::min(high, start + piece.k.rows);
      if (begin < end) body(piece, begin - start, end - begin, begin - low);
      start += piece.k.rows;
    }
  };

  for_pieces([&](const KeyPiece& piece, std::int64_t first, std::int64_t count, std::int64_t column) {
    kernels.gemm_nt(q.data + query_column, q.stride, piece.k.row(first) + key_column, piece.k.stride, scores + column,
                    width, q.rows, count, head_dim);
  });
  for (std::int64_t i = 0; i < q.rows; ++i) {
    float* row = scores + i * width;
    const std::int64_t first = ranges[i].first - low, last = ranges[i].last - low;
    std::fill(row, row + first, 0.0f);
    std::fill(row + last, row + width, 0.0f);
    if (scale != 1.0f) kernels.multiply(row + first, scale, last - first);
    const float sum = kernels.exp_sum(row + first, kernels.maximum(row + first, last - first), last - first);
    kernels.multiply(row + first, 1.0f / sum, last - first);
    std::fill(out.row(i) + query_column, out.row(i) + query_column + head_dim, 0.0f);
  }
  for_pieces([&](const KeyPiece& piece, std::int64_t first, std::int64_t count, std::int64_t column) {
    kernels.gemm_nn_add(scores + column, width, piece.v.row(first) + key_column, piece.v.stride,
                        out.data + query_column, out.stride, q.rows, head_dim, count);
  });
}

}  // namespace

void attention(Context& c, View out, View q, std::span<const KeyPiece> pieces, std::int64_t first_position,
               std::span<const KeyRange> ranges, std::int64_t head_dim, float scale) {
  DGEMMA_CHECK(out.rows == q.rows && out.cols == q.cols && q.cols % head_dim == 0 && !pieces.empty());
  DGEMMA_CHECK(static_cast<std::int64_t>(ranges.size()) == q.rows);
  const std::int64_t heads = q.cols / head_dim;
  const std::int64_t kv_heads = pieces[0].k.cols / head_dim;
  DGEMMA_CHECK(kv_heads > 0 && heads % kv_heads == 0);
  std::int64_t keys = 0;
  for (const KeyPiece& piece : pieces) keys += piece.k.rows;
  for (const KeyRange& range : ranges) DGEMMA_CHECK(0 <= range.first && range.first < range.last && range.last <= keys);

  if (c.bf16_attention() && head_dim % kBf16Inputs == 0) {
    attention_bf16(c, out, q, pieces, first_position, ranges, head_dim, scale);
    return;
  }
  const std::int64_t tiles = (q.rows + kQueryTile - 1) / kQueryTile;
  c.pool().parallel_for(tiles * heads, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* scores = c.scratch(thread, kQueryTile * keys);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t row = task / heads * kQueryTile, head = task % heads;
      const std::int64_t count = std::min(kQueryTile, q.rows - row);
      attend_tile(c, scores, out.slice(row, count), q.slice(row, count), pieces,
                  ranges.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(count)), head * head_dim,
                  head / (heads / kv_heads) * head_dim, head_dim, scale);
    }
  });
}

}  // namespace dgemma
