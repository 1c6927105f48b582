#include "ops/linear.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/dequantize.h"

namespace dgemma {
namespace {

// Weight rows unpacked at a time: 16 rows of 2,816 are 180 kB, which stays in the second-level cache.
constexpr std::int64_t kWeightTile = 16;
constexpr std::int64_t kQuantizeGrain = 8;  // rows

void linear_tile(Context& c, int thread, View out, View x, WeightView weight, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row += kWeightTile) {
    const std::int64_t count = std::min(kWeightTile, end - row);
    const float* rows = weight_rows_f32(weight, row, count, c.scratch(thread, kWeightTile * weight.cols));
    c.kernels().gemm_nt(x.data, x.stride, rows, weight.cols, out.data + row, out.stride, x.rows, count, weight.cols);
  }
}

// Codes and blocks of x at those of `out`.
void quantize_rows(const KernelTable& kernels, View x, std::int64_t begin, std::int64_t end, std::int8_t* codes,
                   ActivationBlock* blocks) {
  for (std::int64_t i = begin; i < end; ++i) {
    kernels.quantize_activations(x.row(i), codes + i * x.cols, blocks + i * x.cols / kActivationBlock, x.cols);
  }
}

}  // namespace

Int8Gemm int8_kernel(const Context& c, WeightView weight) {
  const auto type = static_cast<int>(weight.dtype);
  return c.precision() == Precision::int8 && type < kGgmlTypes ? c.kernels().gemm_int8[type] : nullptr;
}

Int8Rows int8_rows(Context& c, View x) {
  std::int8_t* codes = c.activation_codes(x.rows * x.cols);
  ActivationBlock* blocks = c.activation_blocks(x.rows * x.cols / kActivationBlock);
  c.pool().parallel_for(x.rows, kQuantizeGrain, [&](std::int64_t begin, std::int64_t end, int) {
    quantize_rows(c.kernels(), x, begin, end, codes, blocks);
  });
  return {codes, blocks};
}

const float* weight_rows_f32(WeightView weight, std::int64_t begin, std::int64_t count, float* scratch) {
  const std::byte* data = weight.row(begin);
  if (weight.dtype == DType::f32 && reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0) {
    return reinterpret_cast<const float*>(data);
  }
  const DequantizeFunction dequantize = dequantize_for(static_cast<std::uint32_t>(weight.dtype));
  DGEMMA_CHECK(dequantize != nullptr);
  dequantize(data, scratch, count * weight.cols);
  return scratch;
}

void linear(Context& c, View out, View x, WeightView weight) {
  const LinearGroup group{out, x, weight};
  linear_groups(c, std::span(&group, 1));
}

void linear_groups(Context& c, std::span<const LinearGroup> groups) {
  // first_task[g]: tasks before group g; a task is one weight tile of one group. first_value[g]: 8-bit activations
  // before those of group g.
  std::vector<std::int64_t> first_task(groups.size() + 1, 0), first_value(groups.size() + 1, 0);
  const auto tile_of = [&](const LinearGroup& group) {
    return int8_kernel(c, group.weight) != nullptr ? kPanelRows : kWeightTile;
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const LinearGroup& group = groups[g];
    DGEMMA_CHECK(group.x.cols == group.weight.cols && group.out.cols == group.weight.rows &&
                 group.out.rows == group.x.rows);
    const std::int64_t tile = tile_of(group);
    first_task[g + 1] = first_task[g] + (group.weight.rows + tile - 1) / tile;
    first_value[g + 1] = first_value[g] + (int8_kernel(c, group.weight) != nullptr ? group.x.rows * group.x.cols : 0);
  }
  std::int8_t* codes = c.activation_codes(first_value.back());
  ActivationBlock* blocks = c.activation_blocks(first_value.back() / kActivationBlock);
  const auto quantize = [&](std::size_t g, std::int64_t begin, std::int64_t end) {
    if (first_value[g] == first_value[g + 1]) return;
    quantize_rows(c.kernels(), groups[g].x, begin, end, codes + first_value[g],
                  blocks + first_value[g] / kActivationBlock);
  };
  if (groups.size() == 1) {
    c.pool().parallel_for(groups[0].x.rows, kQuantizeGrain,
                          [&](std::int64_t begin, std::int64_t end, int) { quantize(0, begin, end); });
  } else if (first_value.back() > 0) {
    c.pool().parallel_for(static_cast<std::int64_t>(groups.size()), 1, [&](std::int64_t begin, std::int64_t, int) {
      const auto g = static_cast<std::size_t>(begin);
      quantize(g, 0, groups[g].x.rows);
    });
  }
  // A chunk is several tiles: an int8 kernel fetches the tile after its own while it works.
  c.pool().parallel_for(first_task.back(), groups.size() == 1 ? 4 : 8,
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          for (std::int64_t task = begin; task < end; ++task) {
                            const auto after = std::upper_bound(first_task.begin(), first_task.end(), task);
                            const auto g = static_cast<std::size_t>(after - first_task.begin() - 1);
                            const LinearGroup& group = groups[g];
                            const std::int64_t tile = tile_of(group), row = (task - first_task[g]) * tile;
                            const std::int64_t count = std::min(tile, group.weight.rows - row);
                            if (const Int8Gemm gemm = int8_kernel(c, group.weight)) {
                              gemm(codes + first_value[g], blocks + first_value[g] / kActivationBlock, group.x.rows,
                                   group.weight.row(row), count, group.x.cols, group.out.data + row, group.out.stride);
                            } else {
                              linear_tile(c, thread, group.out, group.x, group.weight, row, row + count);
                            }
                          }
                        });
}

void embed(Context& c, View out, std::span<const std::int32_t> ids, WeightView table, float scale) {
  DGEMMA_CHECK(out.rows == static_cast<std::int64_t>(ids.size()) && out.cols == table.cols);
  for (const std::int32_t id : ids) DGEMMA_CHECK(id >= 0 && id < table.rows);
  c.pool().parallel_for(out.rows, 8, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = weight_rows_f32(table, ids[i], 1, c.scratch(thread, table.cols));
      c.kernels().scale_weight(out.row(i), row, scale, nullptr, table.cols);
    }
  });
}

}  // namespace dgemma
