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

RoundedProduct::RoundedProduct(const Context& c, WeightView weight) : kernels_(&c.kernels()), weight_(weight) {
  const auto type = static_cast<int>(weight.dtype);
  if (type >= kGgmlTypes || weight.cols % kBf16Inputs != 0) return;
  if (c.precision() == Precision::int8) int8_ = kernels_->gemm_int8[type];
  if (c.precision() == Precision::bf16) bf16_ = kernels_->gemm_bf16[type];
}

std::int64_t RoundedProduct::bytes(std::int64_t rows) const {
  constexpr std::int64_t kLine = 64;
  if (bf16_ != nullptr) return (rows + kBf16Rows - 1) / kBf16Rows * kBf16Rows * weight_.cols * 2;
  const std::int64_t blocks = weight_.cols / kActivationBlock;
  return (rows * (weight_.cols + blocks * static_cast<std::int64_t>(sizeof(ActivationBlock))) + kLine - 1) / kLine *
         kLine;
}

ActivationBlock* RoundedProduct::blocks(const std::byte* rounded, std::int64_t rows) const {
  return reinterpret_cast<ActivationBlock*>(const_cast<std::byte*>(rounded) + rows * weight_.cols);
}

void RoundedProduct::round(View x, std::int64_t begin, std::int64_t end, std::byte* rounded) const {
  if (bf16_ != nullptr) {
    kernels_->pack_bf16(x.row(begin), x.stride, end - begin, x.cols,
                        reinterpret_cast<std::uint16_t*>(rounded) + begin * x.cols);
    return;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    kernels_->quantize_activations(x.row(i), reinterpret_cast<std::int8_t*>(rounded) + i * x.cols,
                                   blocks(rounded, x.rows) + i * x.cols / kActivationBlock, x.cols);
  }
}

void RoundedProduct::gather(const std::byte* from, std::int64_t count, std::span<const std::int32_t> rows,
                            std::byte* to) const {
  const auto taken = static_cast<std::int64_t>(rows.size()), cols = weight_.cols;
  if (bf16_ != nullptr) {
    // Pieces of 32 inputs of a row, from its place among 16 to another; places that no row fills are zero.
    constexpr std::int64_t kPiece = 2 * kBf16Inputs, kBlock = kBf16Rows * kPiece;
    for (std::int64_t r = 0; r < (taken + kBf16Rows - 1) / kBf16Rows * kBf16Rows; ++r) {
      std::byte* out = to + r / kBf16Rows * kBf16Rows * cols * 2 + r % kBf16Rows * kPiece;
      const std::int64_t source = r < taken ? rows[r] : 0;
      const std::byte* in = from + source / kBf16Rows * kBf16Rows * cols * 2 + source % kBf16Rows * kPiece;
      for (std::int64_t i = 0; i < cols / kBf16Inputs; ++i) {
        if (r < taken) {
          std::copy_n(in + i * kBlock, kPiece, out + i * kBlock);
        } else {
          std::fill_n(out + i * kBlock, kPiece, std::byte{0});
        }
      }
    }
    return;
  }
  const std::int64_t row_blocks = cols / kActivationBlock;
  for (std::int64_t r = 0; r < taken; ++r) {
    std::copy_n(from + rows[r] * cols, cols, to + r * cols);
    std::copy_n(blocks(from, count) + rows[r] * row_blocks, row_blocks, blocks(to, taken) + r * row_blocks);
  }
}

void RoundedProduct::multiply(const std::byte* rounded, std::int64_t rows, std::int64_t first, std::int64_t count,
                              float* out, std::int64_t stride) const {
  if (bf16_ != nullptr) {
    bf16_(reinterpret_cast<const std::uint16_t*>(rounded), rows, weight_.row(first), count, weight_.cols, out, stride);
  } else {
    int8_(reinterpret_cast<const std::int8_t*>(rounded), blocks(rounded, rows), rows, weight_.row(first), count,
          weight_.cols, out, stride);
  }
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
  if (groups.empty()) return;
  // A task is one weight tile of one group; first_task[g]: tasks before group g. first_byte[g]: where its activations
  // lie in the workspace, if they are rounded or gathered; before them all, what is gathered from.
  std::vector<std::int64_t> first_task(groups.size() + 1, 0), first_byte(groups.size() + 1, 0);
  std::vector<RoundedProduct> products;
  const bool gathered = !groups[0].rows.empty();
  const View shared = groups[0].x;
  const auto tile_of = [&](std::size_t g) { return products[g] ? kPanelRows : kWeightTile; };
  const auto rows_of = [&](std::size_t g) {
    return gathered ? static_cast<std::int64_t>(groups[g].rows.size()) : groups[g].x.rows;
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const LinearGroup& group = groups[g];
    DGEMMA_CHECK(group.x.cols == group.weight.cols && group.out.cols == group.weight.rows);
    DGEMMA_CHECK(group.out.rows == rows_of(g) && gathered == !group.rows.empty());
    DGEMMA_CHECK(!gathered || (group.x.data == shared.data && group.weight.dtype == groups[0].weight.dtype));
    products.emplace_back(c, group.weight);
    if (g == 0 && gathered && products[0]) first_byte[0] = products[0].bytes(shared.rows);
    const std::int64_t unrounded = gathered ? rows_of(g) * group.x.cols * static_cast<std::int64_t>(sizeof(float)) : 0;
    first_task[g + 1] = first_task[g] + (group.weight.rows + tile_of(g) - 1) / tile_of(g);
    first_byte[g + 1] = first_byte[g] + (products[g] ? products[g].bytes(rows_of(g)) : unrounded);
  }
  std::byte* const workspace = first_byte.back() > 0 ? c.workspace(first_byte.back()) : nullptr;
  const auto floats = [&](std::size_t g) {
    float* const data = reinterpret_cast<float*>(workspace + first_byte[g]);
    return View{data, rows_of(g), groups[g].x.cols, groups[g].x.cols};
  };
  if (products[0] && (gathered || groups.size() == 1)) {
    c.pool().parallel_for(shared.rows, RoundedProduct::kRowGroup, [&](std::int64_t begin, std::int64_t end, int) {
      products[0].round(shared, begin, end, workspace);
    });
  }
  if (gathered || groups.size() > 1) {
    c.pool().parallel_for(static_cast<std::int64_t>(groups.size()), 1, [&](std::int64_t begin, std::int64_t, int) {
      const auto g = static_cast<std::size_t>(begin);
      if (gathered && products[g]) {
        products[g].gather(workspace, shared.rows, groups[g].rows, workspace + first_byte[g]);
      } else if (gathered) {
        for (std::int64_t r = 0; r < rows_of(g); ++r) {
          std::copy_n(shared.row(groups[g].rows[r]), shared.cols, floats(g).row(r));
        }
      } else if (products[g]) {
        products[g].round(groups[g].x, 0, groups[g].x.rows, workspace + first_byte[g]);
      }
    });
  }
  // A chunk is several tiles: a rounded product fetches the tile after its own while it works.
  c.pool().parallel_for(
      first_task.back(), groups.size() == 1 ? 4 : 8, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t task = begin; task < end; ++task) {
          const auto after = std::upper_bound(first_task.begin(), first_task.end(), task);
          const auto g = static_cast<std::size_t>(after - first_task.begin() - 1);
          const LinearGroup& group = groups[g];
          const std::int64_t row = (task - first_task[g]) * tile_of(g);
          const std::int64_t count = std::min(tile_of(g), group.weight.rows - row);
          if (products[g]) {
            products[g].multiply(workspace + first_byte[g], rows_of(g), row, count, group.out.data + row,
                                 group.out.stride);
          } else {
            linear_tile(c, thread, group.out, gathered ? floats(g) : group.x, group.weight, row, row + count);
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
