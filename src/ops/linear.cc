#include "ops/linear.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/dequantize.h"

namespace dgemma {
namespace {

// Weight rows unpacked at a time: 16 rows of 2,816 are 180 kB, which stays in the second-level cache.
constexpr std::int64_t kWeightTile = 16;

void linear_tile(Context& c, int thread, View out, View x, WeightView weight, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row += kWeightTile) {
    const std::int64_t count = std::min(kWeightTile, end - row);
    const float* rows = weight_rows_f32(weight, row, count, c.scratch(thread, kWeightTile * weight.cols));
    c.kernels().gemm_nt(x.data, x.stride, rows, weight.cols, out.data + row, out.stride, x.rows, count, weight.cols);
  }
}

}  // namespace

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
  DGEMMA_CHECK(x.cols == weight.cols && out.cols == weight.rows && out.rows == x.rows);
  c.pool().parallel_for(weight.rows, kWeightTile, [&](std::int64_t begin, std::int64_t end, int thread) {
    linear_tile(c, thread, out, x, weight, begin, end);
  });
}

void linear_groups(Context& c, std::span<const LinearGroup> groups) {
  // first_task[g]: tasks before group g; a task is one weight tile of one group.
  std::vector<std::int64_t> first_task(groups.size() + 1, 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const LinearGroup& group = groups[g];
    DGEMMA_CHECK(group.x.cols == group.weight.cols && group.out.cols == group.weight.rows &&
                 group.out.rows == group.x.rows);
    first_task[g + 1] = first_task[g] + (group.weight.rows + kWeightTile - 1) / kWeightTile;
  }
  c.pool().parallel_for(first_task.back(), 4, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t task = begin; task < end; ++task) {
      const auto after = std::upper_bound(first_task.begin(), first_task.end(), task);
      const auto g = static_cast<std::size_t>(after - first_task.begin() - 1);
      const std::int64_t row = (task - first_task[g]) * kWeightTile;
      const LinearGroup& group = groups[g];
      linear_tile(c, thread, group.out, group.x, group.weight, row, std::min(row + kWeightTile, group.weight.rows));
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
