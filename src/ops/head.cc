#include "ops/head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "ops/linear.h"

namespace dgemma {
namespace {

// Vocabulary rows a tile: part of the meaning of a seed (one random number a row and tile), so it is the same
// everywhere.
constexpr std::int64_t kVocabularyTile = 256;
constexpr std::int64_t kUnpackRows = 16;

// A row's running softmax over the tiles seen so far, all sums relative to exp(maximum).
struct RunningRow {
  float maximum = -std::numeric_limits<float>::infinity();
  double sum = 0;       // sum of exp(y - maximum)
  double weighted = 0;  // sum of (y - maximum) exp(y - maximum)
};

// Takes one tile of processed logits y (overwritten by exp(y - maximum)) into the running row.
void take_tile(const KernelTable& kernels, RunningRow& state, RowPrediction& prediction, float* soft,
               std::int64_t hidden, float* y, std::int64_t first, std::int64_t count, const RowDraw& draw) {
  const float tile_maximum = kernels.maximum(y, count);
  if (tile_maximum > state.maximum) {
    const double shift = double{state.maximum} - tile_maximum;
    const double rescale = std::exp(shift);  // 0 for the first tile
    if (state.sum > 0) state.weighted = (state.weighted + shift * state.sum) * rescale;
    state.sum *= rescale;
    if (soft != nullptr) kernels.multiply(soft, static_cast<float>(rescale), hidden);
    state.maximum = tile_maximum;
    prediction.argmax = static_cast<std::int32_t>(first + (std::find(y, y + count, tile_maximum) - y));
  }
  for (std::int64_t j = 0; j < count; ++j) y[j] -= state.maximum;
  // exp_sum overwrites y; the entropy needs the differences too.
  float differences[kVocabularyTile];
  std::copy_n(y, count, differences);
  const double mass = kernels.exp_sum(y, 0.0f, count);
  double weighted = 0;
  for (std::int64_t j = 0; j < count; ++j) weighted += double{differences[j]} * y[j];
  state.sum += mass;
  state.weighted += weighted;

  // Weighted reservoir: the tile replaces the candidate with probability mass / sum; the same number, stretched, then
  // picks within the tile. Exact for any tile sizes.
  const double u =
      random_uniform(draw.seed, draw.stream, draw.row << 32 | static_cast<std::uint64_t>(first / kVocabularyTile));
  if (u * state.sum < mass) {
    double left = u * state.sum;
    std::int64_t pick = 0;
    while (pick + 1 < count && left >= y[pick]) left -= y[pick++];
    prediction.sample = static_cast<std::int32_t>(first + pick);
  }
}

// The tile's part of every row: running sums, then the expected table row. `logits` [rows, count] are processed; `tile`
// is the tile of the table as f32, needed with `soft` only.
void take_rows(Context& c, std::span<RunningRow> states, std::span<RowPrediction> out, View soft, View logits,
               std::int64_t first, std::span<const RowDraw> draws, const float* tile) {
  constexpr std::int64_t kGrain = 24;  // rows that share each panel of the table in gemm_nn_add
  c.pool().parallel_for(logits.rows, kGrain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      take_tile(c.kernels(), states[i], out[i], soft ? soft.row(i) : nullptr, soft.cols, logits.row(i), first,
                logits.cols, draws[i]);
    }
    if (soft) {
      c.kernels().gemm_nn_add(logits.row(begin), logits.stride, tile, soft.cols, soft.row(begin), soft.stride,
                              end - begin, soft.cols, logits.cols);
    }
  });
}

// Rows of logits that a filter needs whole at once: 8 x 262,144 are 8 MiB.
constexpr std::int64_t kFilteredRows = 8;

// A masked logit: weighs nothing in any sum and yet is finite.
constexpr float kMasked = -1e30f;

void finish(const KernelTable& kernels, const RunningRow& state, RowPrediction& prediction, float* soft,
            std::int64_t width) {
  prediction.entropy = static_cast<float>(std::max(0.0, std::log(state.sum) - state.weighted / state.sum));
  prediction.confidence = static_cast<float>(1.0 / state.sum);
  if (soft != nullptr) kernels.multiply(soft, static_cast<float>(1.0 / state.sum), width);
}

// Few rows: their logits whole, so that the filter can rank them; then the same sweep over the tiles.
void predict_filtered(Context& c, std::span<RowPrediction> out, View soft, View hidden, WeightView table,
                      float soft_cap, std::span<const RowDraw> draws, const TokenFilter& filter, HeadBuffers& buffers) {
  const std::int64_t rows = hidden.rows, width = hidden.cols;
  const View logits = buffers.logits.reshape(rows, table.rows);
  linear(c, logits, hidden, table);
  std::vector<RunningRow> states(static_cast<std::size_t>(rows));
  c.pool().parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* y = logits.row(i);
      c.kernels().soft_cap(y, soft_cap, draws[i].temperature, table.rows);
      const float threshold = keep_threshold({y, static_cast<std::size_t>(table.rows)}, filter);
      for (std::int64_t v = 0; v < table.rows; ++v) y[v] = y[v] >= threshold ? y[v] : kMasked;
    }
  });
  const View unpacked = buffers.table.reshape(kVocabularyTile, width);
  for (std::int64_t first = 0; first < table.rows; first += kVocabularyTile) {
    const std::int64_t count = std::min(kVocabularyTile, table.rows - first);
    const float* tile = soft ? weight_rows_f32(table, first, count, unpacked.data) : nullptr;
    take_rows(c, states, out, soft, {logits.data + first, rows, count, logits.stride}, first, draws, tile);
  }
  for (std::int64_t i = 0; i < rows; ++i) finish(c.kernels(), states[i], out[i], soft ? soft.row(i) : nullptr, width);
}

}  // namespace

void head_predict(Context& c, std::span<RowPrediction> out, View soft, View hidden, WeightView table, float soft_cap,
                  std::span<const RowDraw> draws, const TokenFilter& filter, HeadBuffers& buffers) {
  const std::int64_t rows = hidden.rows, width = hidden.cols;
  DGEMMA_CHECK(table.cols == width && static_cast<std::int64_t>(out.size()) == rows && draws.size() == out.size());
  DGEMMA_CHECK(!soft || (soft.rows == rows && soft.cols == width));
  for (std::int64_t i = 0; soft && i < rows; ++i) std::fill_n(soft.row(i), width, 0.0f);
  if (filter.active()) {
    for (std::int64_t row = 0; row < rows; row += kFilteredRows) {
      const std::int64_t count = std::min(kFilteredRows, rows - row);
      const auto at = static_cast<std::size_t>(row), n = static_cast<std::size_t>(count);
      predict_filtered(c, out.subspan(at, n), soft ? soft.slice(row, count) : View{}, hidden.slice(row, count), table,
                       soft_cap, draws.subspan(at, n), filter, buffers);
    }
    return;
  }
  const View logits = buffers.logits.reshape(rows, kVocabularyTile);
  const View unpacked = buffers.table.reshape(kVocabularyTile, width);
  std::vector<RunningRow> states(static_cast<std::size_t>(rows));

  for (std::int64_t first = 0; first < table.rows; first += kVocabularyTile) {
    const std::int64_t count = std::min(kVocabularyTile, table.rows - first);
    const float* tile = nullptr;  // the whole tile as f32: in the file, or unpacked
    c.pool().parallel_for(count, kUnpackRows, [&](std::int64_t begin, std::int64_t end, int) {
      const float* part = weight_rows_f32(table, first + begin, end - begin, unpacked.row(begin));
      if (begin == 0) tile = part;
      c.kernels().gemm_nt(hidden.data, hidden.stride, part, width, logits.data + begin, logits.stride, rows,
                          end - begin, width);
    });
    c.pool().parallel_for(rows, 12, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        c.kernels().soft_cap(logits.row(i), soft_cap, draws[i].temperature, count);
      }
    });
    take_rows(c, states, out, soft, {logits.data, rows, count, logits.stride}, first, draws, tile);
  }
  for (std::int64_t i = 0; i < rows; ++i) finish(c.kernels(), states[i], out[i], soft ? soft.row(i) : nullptr, width);
}

void head_logits(Context& c, View logits, View hidden, WeightView table, float soft_cap) {
  linear(c, logits, hidden, table);
  for (std::int64_t i = 0; i < logits.rows; ++i) c.kernels().soft_cap(logits.row(i), soft_cap, 1.0f, logits.cols);
}

}  // namespace dgemma
