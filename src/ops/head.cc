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

// A probability under this part of the row's sum so far adds nothing to the soft embedding: all 262,144 of a
// vocabulary, were they just under it, would be a quarter of the sum.
constexpr double kNegligible = 0x1p-20;

// Takes one tile of processed logits y into the running row, and leaves in y what the soft embedding adds:
// exp(y - maximum), or 0 where that is negligible. Returns how many are not. `significant` marks their columns.
std::int64_t take_tile(const KernelTable& kernels, RunningRow& state, RowPrediction& prediction, float* soft,
                       std::int64_t hidden, float* y, std::int64_t first, std::int64_t count, const RowDraw& draw,
                       bool full_sum, std::uint8_t* significant) {
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
  float weighted = 0;
  const double mass = kernels.exp_sum_weighted(y, state.maximum, &weighted, count);
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
  if (soft == nullptr) return 0;

  const float least = full_sum ? 0.0f : static_cast<float>(kNegligible * state.sum);
  std::int64_t kept = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const bool keep = y[j] >= least;
    y[j] = keep ? y[j] : 0.0f;
    significant[j] |= static_cast<std::uint8_t>(keep);
    kept += keep ? 1 : 0;
  }
  return kept;
}

// Rows that share each panel of the table in gemm_nn_add.
constexpr std::int64_t kRowGroup = 24;

// The tile's part of every row: running sums, then the expected table row. `logits` [rows, count] are processed;
// `table` are the tile's rows.
void take_rows(Context& c, std::span<RunningRow> states, std::span<RowPrediction> out, View soft, View logits,
               std::int64_t first, std::span<const RowDraw> draws, WeightView table, HeadBuffers& buffers) {
  const std::int64_t groups = (logits.rows + kRowGroup - 1) / kRowGroup, count = logits.cols;
  std::vector<std::int64_t> kept(static_cast<std::size_t>(groups), 0);
  std::vector<std::uint8_t> significant(static_cast<std::size_t>(groups * count), 0);
  c.pool().parallel_for(logits.rows, kRowGroup, [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t group = begin / kRowGroup;
    for (std::int64_t i = begin; i < end; ++i) {
      kept[group] += take_tile(c.kernels(), states[i], out[i], soft ? soft.row(i) : nullptr, soft.cols, logits.row(i),
                               first, count, draws[i], c.full_soft_embedding(), significant.data() + group * count);
    }
  });
  if (!soft) return;

  // A group of rows with many terms takes them as one product with the whole tile, zeros included; one with few adds
  // them one by one. Both add in the order of the vocabulary, so they give the same bits.
  const auto dense = [&](std::int64_t group) { return 8 * kept[group] > kRowGroup * count; };
  bool all = false;
  for (std::int64_t group = 0; group < groups; ++group) {
    all = all || dense(group);
    for (std::int64_t j = 0; group > 0 && j < count; ++j) significant[j] |= significant[group * count + j];
  }
  const View unpacked = buffers.table.reshape(kVocabularyTile, soft.cols);
  std::vector<const float*> rows(static_cast<std::size_t>(count), nullptr);  // in the file, or unpacked
  c.pool().parallel_for(count, kUnpackRows, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t j = begin; j < end; ++j) {
      if (all || significant[j] != 0) rows[j] = weight_rows_f32(table, j, 1, unpacked.row(j));
    }
  });
  c.pool().parallel_for(logits.rows, kRowGroup, [&](std::int64_t begin, std::int64_t end, int) {
    if (dense(begin / kRowGroup)) {
      c.kernels().gemm_nn_add(logits.row(begin), logits.stride, rows[0], soft.cols, soft.row(begin), soft.stride,
                              end - begin, soft.cols, count);
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < count; ++j) {
        const float* weight = logits.row(i) + j;
        if (*weight != 0.0f)
          c.kernels().gemm_nn_add(weight, 1, rows[j], soft.cols, soft.row(i), soft.stride, 1, soft.cols, 1);
      }
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
  for (std::int64_t first = 0; first < table.rows; first += kVocabularyTile) {
    const std::int64_t count = std::min(kVocabularyTile, table.rows - first);
    take_rows(c, states, out, soft, {logits.data + first, rows, count, logits.stride}, first, draws,
              table.slice(first, count), buffers);
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
  std::vector<RunningRow> states(static_cast<std::size_t>(rows));
  const RoundedProduct product(c, table);
  std::byte* const rounded = product ? c.workspace(product.bytes(rows)) : nullptr;
  if (product) {
    c.pool().parallel_for(rows, RoundedProduct::kRowGroup, [&](std::int64_t begin, std::int64_t end, int) {
      product.round(hidden, begin, end, rounded);
    });
  }

  for (std::int64_t first = 0; first < table.rows; first += kVocabularyTile) {
    const WeightView tile = table.slice(first, std::min(kVocabularyTile, table.rows - first));
    if (product) {
      c.pool().parallel_for(tile.rows, kPanelRows, [&](std::int64_t begin, std::int64_t end, int) {
        product.multiply(rounded, rows, first + begin, end - begin, logits.data + begin, logits.stride);
      });
    } else {
      linear(c, {logits.data, rows, tile.rows, logits.stride}, hidden, tile);
    }
    c.pool().parallel_for(rows, 12, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        c.kernels().soft_cap(logits.row(i), soft_cap, draws[i].temperature, tile.rows);
      }
    });
    take_rows(c, states, out, soft, {logits.data, rows, tile.rows, logits.stride}, first, draws, tile, buffers);
  }
  for (std::int64_t i = 0; i < rows; ++i) finish(c.kernels(), states[i], out[i], soft ? soft.row(i) : nullptr, width);
}

void head_logits(Context& c, View logits, View hidden, WeightView table, float soft_cap) {
  linear(c, logits, hidden, table);
  for (std::int64_t i = 0; i < logits.rows; ++i) c.kernels().soft_cap(logits.row(i), soft_cap, 1.0f, logits.cols);
}

}  // namespace dgemma
