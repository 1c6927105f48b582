// Attention in bfloat16. Keys and values are packed once for all query rows, a span of positions at a time; then each
// task takes some query rows of the heads that share a key head through the span, chunk after chunk, with a running
// softmax. Spans, chunks and panels lie at multiples of their sizes in positions, and what a row may not see adds exact
// zeros to it, so a row's sums run in the same order however its keys arrived and whoever shares its tile.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention.h"

namespace dgemma {
namespace {

constexpr std::int64_t kChunk = 512;     // keys of one running-softmax step: scores and probabilities of a tile stay
                                         // in the second-level cache
constexpr std::int64_t kSpan = 2048;     // keys packed at a time; a multiple of kChunk
constexpr std::int64_t kTileRows = 128;  // (query row, head) pairs of a task

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

struct Shape {
  std::int64_t rows, head_dim, kv_heads, group;  // group: query heads a key head
  std::int64_t tile;                             // query rows of a task, a multiple of 16
  std::int64_t tiles;
  // Elements of packed queries of a tile; words of a packed panel of 32 keys, of the same keys' values in a panel of 32
  // columns, and of a span of either for one key head.
  std::int64_t query_block() const { return group * tile * head_dim; }
  std::int64_t key_panel() const { return head_dim / 2 * kPanelRows; }
  std::int64_t value_panel() const { return kSpan / 2 * kPanelRows; }
  std::int64_t span_words() const { return kSpan / 2 * head_dim; }
};

// A row of one head: sums relative to exp(maximum).
struct RunningSoftmax {
  float maximum = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// Packs keys and values at positions begin .. begin + 31 of one key head. What lies outside of all pieces is zero.
void pack_keys(const KernelTable& kernels, const Shape& shape, std::span<const KeyPiece> pieces,
               std::int64_t first_position, std::int64_t begin, std::int64_t column, float* scratch,
               std::uint32_t* key_panel, std::uint32_t* value_panel) {
  const std::int64_t head_dim = shape.head_dim;
  std::int64_t start = first_position;
  for (const KeyPiece& piece : pieces) {
    if (start <= begin && begin + kPanelRows <= start + piece.k.rows) {  // the common case needs no copy
      const std::int64_t row = begin - start;
      kernels.pack_panel_bf16(piece.k.row(row) + column, piece.k.stride, kPanelRows, head_dim, key_panel);
      kernels.pack_inputs_bf16(piece.v.row(row) + column, piece.v.stride, kPanelRows, head_dim, value_panel,
                               shape.value_panel());
      return;
    }
    start += piece.k.rows;
  }
  float* const k = scratch;
  float* const v = scratch + kPanelRows * head_dim;
  std::fill_n(scratch, 2 * kPanelRows * head_dim, 0.0f);
  start = first_position;
  for (const KeyPiece& piece : pieces) {
    const std::int64_t low = std::max(begin, start), high = std::min(begin + kPanelRows, start + piece.k.rows);
    for (std::int64_t position = low; position < high; ++position) {
      std::copy_n(piece.k.row(position - start) + column, head_dim, k + (position - begin) * head_dim);
      std::copy_n(piece.v.row(position - start) + column, head_dim, v + (position - begin) * head_dim);
    }
    start += piece.k.rows;
  }
  kernels.pack_panel_bf16(k, head_dim, kPanelRows, head_dim, key_panel);
  kernels.pack_inputs_bf16(v, head_dim, kPanelRows, head_dim, value_panel, shape.value_panel());
}

// One task: query rows of one tile and key head against one packed span.
struct Tile {
  const KernelTable& kernels;
  const Shape& shape;
  std::span<const KeyRange> ranges;  // of the tile's rows, in positions
  const std::uint16_t* queries;
  const std::uint32_t *keys, *values;  // the span's
  std::int64_t span_begin;
  float scale;

  // A row's head: its scores become probabilities, and what it has summed so far is brought to the new maximum.
  void take_row(float* scores, std::int64_t count, RunningSoftmax& state, float* sums) const {
    if (scale != 1.0f) kernels.multiply(scores, scale, count);
    const float maximum = std::max(state.maximum, kernels.maximum(scores, count));
    if (maximum > state.maximum && state.sum > 0) {
      const float factor = std::exp(state.maximum - maximum);
      state.sum *= factor;
      kernels.multiply(sums, factor, shape.head_dim);
    }
    state.maximum = maximum;
    state.sum += kernels.exp_sum(scores, maximum, count);
  }

  // What run() needs of `scratch`: scores, probabilities in two bytes, sums.
  static std::int64_t scratch_floats(const Shape& shape) {
    return shape.group * shape.tile * (kChunk + kChunk / 2 + shape.head_dim);
  }

  // `out`: the group's columns of the tile's rows; `states`: [group, rows of the pass] from the tile's first row.
  void run(View out, RunningSoftmax* states, float* scratch) const {
    const auto rows = static_cast<std::int64_t>(ranges.size());
    const std::int64_t head_dim = shape.head_dim, padded = round_up(rows, kBf16Rows), all = shape.group * padded;
    float* const scores = scratch;
    auto* const probabilities = reinterpret_cast<std::uint16_t*>(scores + all * kChunk);
    float* const sums = scores + all * (kChunk + kChunk / 2);
    std::fill_n(sums, all * head_dim, 0.0f);
    for (std::int64_t head = 0; head < shape.group; ++head) {
      for (std::int64_t i = 0; i < rows; ++i) {
        std::copy_n(out.row(i) + head * head_dim, head_dim, sums + (head * padded + i) * head_dim);
      }
    }
    for (std::int64_t chunk = span_begin; chunk < span_begin + kSpan; chunk += kChunk) {
      std::int64_t low = kChunk, high = 0;
      for (const KeyRange& range : ranges) {
        low = std::min(low, std::max<std::int64_t>(range.first - chunk, 0));
        high = std::max(high, std::min(range.last - chunk, kChunk));
      }
      if (low >= high) continue;
      low = low / kPanelRows * kPanelRows;
      high = round_up(high, kPanelRows);
      const std::int64_t count = high - low, in_span = chunk - span_begin + low;
      kernels.multiply_bf16(queries, kBf16Rows * head_dim, all, keys + in_span / kPanelRows * shape.key_panel(),
                            shape.key_panel(), count / kPanelRows, head_dim, false, scores, kChunk);
      for (std::int64_t head = 0; head < shape.group; ++head) {
        for (std::int64_t i = 0; i < rows; ++i) {
          float* const row = scores + (head * padded + i) * kChunk;
          const std::int64_t begin = std::clamp<std::int64_t>(ranges[i].first - chunk - low, 0, count);
          const std::int64_t end = std::clamp<std::int64_t>(ranges[i].last - chunk - low, begin, count);
          if (begin < end) {
            take_row(row + begin, end - begin, states[head * shape.rows + i], sums + (head * padded + i) * head_dim);
          }
          std::fill(row, row + begin, 0.0f);
          std::fill(row + end, row + count, 0.0f);
        }
        kernels.pack_bf16(scores + head * padded * kChunk, kChunk, rows, count, probabilities + head * padded * count);
      }
      kernels.multiply_bf16(probabilities, kBf16Rows * count, all, values + in_span / 2 * kPanelRows,
                            shape.value_panel(), head_dim / kPanelRows, count, true, sums, head_dim);
    }
    for (std::int64_t head = 0; head < shape.group; ++head) {
      for (std::int64_t i = 0; i < rows; ++i) {
        std::copy_n(sums + (head * padded + i) * head_dim, head_dim, out.row(i) + head * head_dim);
      }
    }
  }
};

}  // namespace

void attention_bf16(Context& c, View out, View q, std::span<const KeyPiece> pieces, std::int64_t first_position,
                    std::span<const KeyRange> ranges, std::int64_t head_dim, float scale) {
  const KernelTable& kernels = c.kernels();
  const std::int64_t heads = q.cols / head_dim, kv_heads = pieces[0].k.cols / head_dim, group = heads / kv_heads;
  const std::int64_t most = round_up(std::max<std::int64_t>(kTileRows / group, 1), kBf16Rows);
  const std::int64_t tile = std::min(most, round_up(q.rows, kBf16Rows));
  const Shape shape{q.rows, head_dim, kv_heads, group, tile, (q.rows + tile - 1) / tile};

  std::vector<KeyRange> positions(ranges.begin(), ranges.end());
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
  for (KeyRange& range : positions) {
    range = {range.first + first_position, range.last + first_position};
    low = std::min(low, range.first);
    high = std::max(high, range.last);
  }

  const std::int64_t query_bytes = round_up(2 * kv_heads * shape.tiles * shape.query_block(), 64);
  const std::int64_t span_bytes = 4 * kv_heads * shape.span_words();
  std::byte* const workspace = c.workspace(query_bytes + 2 * span_bytes);
  auto* const queries = reinterpret_cast<std::uint16_t*>(workspace);
  auto* const keys = reinterpret_cast<std::uint32_t*>(workspace + query_bytes);
  auto* const values = keys + kv_heads * shape.span_words();
  std::vector<RunningSoftmax> states(static_cast<std::size_t>(heads * q.rows));

  // Task t: tile t / kv_heads of key head t mod kv_heads.
  const auto for_tiles = [&](const auto& body) {
    c.pool().parallel_for(shape.tiles * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t row = task / kv_heads * tile;
        body(row, std::min(tile, q.rows - row), task % kv_heads, queries + task * shape.query_block(), thread);
      }
    });
  };
  for_tiles([&](std::int64_t row, std::int64_t rows, std::int64_t kv_head, std::uint16_t* packed, int) {
    for (std::int64_t head = 0; head < group; ++head) {
      const std::int64_t column = (kv_head * group + head) * head_dim;
      kernels.pack_bf16(q.row(row) + column, q.stride, rows, head_dim,
                        packed + head * round_up(rows, kBf16Rows) * head_dim);
      for (std::int64_t i = row; i < row + rows; ++i) std::fill_n(out.row(i) + column, head_dim, 0.0f);
    }
  });
  for (std::int64_t span = low / kChunk * kChunk; span < high; span += kSpan) {
    const std::int64_t first = std::max(span, low / kPanelRows * kPanelRows);
    const std::int64_t blocks = (std::min(span + kSpan, high) - first + kPanelRows - 1) / kPanelRows;
    c.pool().parallel_for(blocks * kv_heads, 4, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t position = first + task / kv_heads * kPanelRows, kv_head = task % kv_heads;
        const std::int64_t at = kv_head * shape.span_words(), block = (position - span) / kPanelRows;
        pack_keys(kernels, shape, pieces, first_position, position, kv_head * head_dim,
                  c.scratch(thread, 2 * kPanelRows * head_dim), keys + at + block * shape.key_panel(),
                  values + at + block * kPanelRows / 2 * kPanelRows);
      }
    });
    for_tiles([&](std::int64_t row, std::int64_t rows, std::int64_t kv_head, std::uint16_t* packed, int thread) {
      const auto at = static_cast<std::size_t>(row), count = static_cast<std::size_t>(rows);
      const std::int64_t column = kv_head * group * head_dim;
      const Tile task{kernels,
                      shape,
                      std::span(positions).subspan(at, count),
                      packed,
                      keys + kv_head * shape.span_words(),
                      values + kv_head * shape.span_words(),
                      span,
                      scale};
      task.run({out.row(row) + column, rows, group * head_dim, out.stride},
               states.data() + kv_head * group * q.rows + row, c.scratch(thread, Tile::scratch_floats(shape)));
    });
  }
  c.pool().parallel_for(q.rows, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t head = 0; head < heads; ++head) {
        kernels.multiply(out.row(i) + head * head_dim, 1.0f / states[head * q.rows + i].sum, head_dim);
      }
    }
  });
}

}  // namespace dgemma
