// Products in bfloat16, for every table and format, against double precision on the rounded values: activations rounded
// by the definition (kernels/half.h), weights dequantized (which the gguf package vouches for) and rounded by the rule.
#include "kernels/bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "golden_blocks.h"
#include "kernels/dequantize.h"
#include "kernels/half.h"
#include "kernels/table.h"

namespace dgemma {
namespace {

std::vector<const KernelTable*> tables() {
  int count = 0;
  const KernelTable* const* all = runnable_kernel_tables(&count);
  return {all, all + count};
}

std::vector<float> gaussian(std::int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& value : out) value = normal(generator);
  return out;
}

float rounded(float value) { return half::from_bf16(half::to_bf16(value)); }

// A stored weight: half-way goes down in even inputs and up in odd ones.
float rounded_weight(float value, std::int64_t input) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) + (input % 2 == 0 ? 0x7fffu : 0x8000u);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

std::vector<std::uint16_t> packed(const KernelTable& table, const float* x, std::int64_t rows, std::int64_t cols) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>((rows + 15) / 16 * 16 * cols), 0xffffu);
  table.pack_bf16(x, cols, rows, cols, out.data());
  return out;
}

TEST(Bf16, PackedActivationsAreRoundedToNearestEven) {
  const std::int64_t rows = 19, cols = 96;
  std::vector<float> x = gaussian(rows * cols, 1);
  x[0] = 1.00390625f;  // between 1 and 1 + 2^-7: to the even one, 1
  x[1] = 1.01171875f;  // between 1 + 2^-7 and 1 + 2^-6: to the even one, 1 + 2^-6
  x[2] = -1.00390625f;
  x[3] = 3.4e38f;  // infinity
  for (const KernelTable* table : tables()) {
    const std::vector<std::uint16_t> out = packed(*table, x.data(), rows, cols);
    for (std::int64_t row = 0; row < 32; ++row) {
      for (std::int64_t i = 0; i < cols; ++i) {
        const std::int64_t at = (row / 16 * (cols / 32) + i / 32) * 512 + row % 16 * 32 + i % 32;
        const std::uint16_t expected = row < rows ? half::to_bf16(x[static_cast<std::size_t>(row * cols + i)]) : 0;
        ASSERT_EQ(out[static_cast<std::size_t>(at)], expected) << table->name << ' ' << row << ' ' << i;
      }
    }
  }
}

// The product of two packed operands, panels made from rows (keys) and from columns (values).
TEST(Bf16, MultiplyAgainstDouble) {
  const std::int64_t inputs = 544, ldc = 70;  // past one slab of packing
  for (const std::int64_t m : {1, 5, 16, 23, 32, 49}) {
    const std::vector<float> x = gaussian(m * inputs, 2), rows = gaussian(64 * inputs, 3);
    std::vector<float> columns(rows.size());
    for (std::int64_t j = 0; j < 64; ++j) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        columns[static_cast<std::size_t>(i * 64 + j)] = rows[static_cast<std::size_t>(j * inputs + i)];
      }
    }
    for (const KernelTable* table : tables()) {
      const std::vector<std::uint16_t> a = packed(*table, x.data(), m, inputs);
      const std::int64_t stride = inputs / 2 * kPanelRows;
      std::vector<std::uint32_t> by_rows(static_cast<std::size_t>(2 * stride)), by_columns(by_rows);
      for (std::int64_t p = 0; p < 2; ++p) {
        table->pack_panel_bf16(rows.data() + 32 * p * inputs, inputs, 32, inputs, by_rows.data() + p * stride);
      }
      table->pack_inputs_bf16(columns.data(), 64, inputs, 64, by_columns.data(), stride);
      ASSERT_EQ(by_rows, by_columns) << table->name;
      std::vector<float> c(static_cast<std::size_t>(m * ldc), -1.0f);
      table->multiply_bf16(a.data(), 16 * inputs, m, by_rows.data(), stride, 2, inputs, false, c.data(), ldc);
      std::vector<float> twice = c;
      table->multiply_bf16(a.data(), 16 * inputs, m, by_rows.data(), stride, 2, inputs, true, twice.data(), ldc);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < ldc; ++j) {
          const auto at = static_cast<std::size_t>(i * ldc + j);
          if (j >= 64) {
            ASSERT_EQ(c[at], -1.0f) << table->name << ": wrote past the columns";
            continue;
          }
          double sum = 0, magnitude = 0;
          for (std::int64_t p = 0; p < inputs; ++p) {
            const double term = double{rounded(x[static_cast<std::size_t>(i * inputs + p)])} *
                                rounded(rows[static_cast<std::size_t>(j * inputs + p)]);
            sum += term;
            magnitude += std::abs(term);
          }
          ASSERT_NEAR(c[at], sum, 1e-6 * magnitude) << table->name << ' ' << i << ' ' << j << " of " << m;
          ASSERT_NEAR(twice[at], 2 * sum, 2e-6 * magnitude) << table->name << ' ' << i << ' ' << j << " of " << m;
        }
      }
    }
  }
}

TEST(Bf16, AnOddLastInputIsPairedWithZero) {
  const std::vector<float> x = gaussian(3 * 32, 4);
  for (const KernelTable* table : tables()) {
    std::vector<std::uint32_t> panel(3 * 32, 7u);
    table->pack_inputs_bf16(x.data(), 32, 3, 32, panel.data(), 0);
    for (std::size_t j = 0; j < 32; ++j) {
      EXPECT_EQ(panel[32 + j], half::to_bf16(x[64 + j])) << table->name;
      EXPECT_EQ(panel[64 + j], 7u) << table->name;
    }
  }
}

class Bf16Products : public testing::TestWithParam<BlockType> {};

TEST_P(Bf16Products, AgainstDouble) {
  const BlockType type = GetParam();
  const std::vector<char> file = read_golden(std::string(type.name) + ".bin");
  // Where a scaled code has an offset added, or no fused multiply-add, f32 rounds first, and what is nearly half-way
  // may go either way.
  const std::string_view name = type.name;
  const bool offset = name == "q4_1" || name == "q5_1" || name == "q2_k" || name == "q4_k" || name == "q5_k";
  const int per_row = type.elements == 256 ? 3 : 704 / type.elements;  // past one slab, and not a multiple of it
  const std::int64_t k = std::int64_t{per_row} * type.elements;
  for (const auto [m, n] : {std::array{1, 32}, {13, 32}, {32, 32}, {6, 17}, {37, 1}, {515, 5}}) {
    std::vector<char> weights;
    for (int i = 0; i < n * per_row; ++i) {
      const auto from = file.begin() + i * 7 % 64 * type.bytes;
      weights.insert(weights.end(), from, from + type.bytes);
    }
    std::vector<float> w(static_cast<std::size_t>(n * k));
    dequantize_for(type.id)(weights.data(), w.data(), n * k);
    const std::vector<float> x = gaussian(m * k, 2);
    std::vector<double> sums, magnitudes;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0, magnitude = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          const double value = rounded(x[static_cast<std::size_t>(i * k + p)]);
          const double weight = rounded_weight(w[static_cast<std::size_t>(j * k + p)], p);
          sum += value * weight;
          magnitude += std::abs(value * weight);
        }
        sums.push_back(sum);
        magnitudes.push_back(magnitude);
      }
    }
    for (const KernelTable* table : tables()) {
      ASSERT_NE(table->gemm_bf16[type.id], nullptr) << table->name;
      const double tolerance = offset || std::string_view(table->name) == "scalar" ? 1e-4 : 1e-6;
      std::vector<float> c(static_cast<std::size_t>(m * (n + 1)), -1.0f);
      table->gemm_bf16[type.id](packed(*table, x.data(), m, k).data(), m, weights.data(), n, k, c.data(), n + 1);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          const auto at = static_cast<std::size_t>(i * n + j);
          ASSERT_NEAR(c[static_cast<std::size_t>(i * (n + 1) + j)], sums[at], tolerance * magnitudes[at])
              << table->name << " row " << i << " column " << j << " of " << m << " x " << n;
        }
        ASSERT_EQ(c[static_cast<std::size_t>(i * (n + 1) + n)], -1.0f) << table->name << ": wrote past the columns";
      }
    }
  }
}

TEST_P(Bf16Products, BitsDoNotDependOnTheTile) {
  const BlockType type = GetParam();
  const std::vector<char> file = read_golden(std::string(type.name) + ".bin");
  const int per_row = 64 / 32, m = 21, n = 32;
  const std::int64_t k = std::int64_t{per_row} * type.elements;
  const std::vector<float> x = gaussian(m * k, 3);
  for (const KernelTable* table : tables()) {
    const Bf16Gemm gemm = table->gemm_bf16[type.id];
    std::vector<float> whole(m * n), one(1);
    gemm(packed(*table, x.data(), m, k).data(), m, file.data(), n, k, whole.data(), n);
    for (int i = 0; i < m; ++i) {
      const std::vector<std::uint16_t> row = packed(*table, x.data() + i * k, 1, k);
      for (int j = 0; j < n; ++j) {
        gemm(row.data(), 1, file.data() + j * per_row * type.bytes, 1, k, one.data(), 1);
        ASSERT_EQ(one[0], whole[static_cast<std::size_t>(i * n + j)]) << table->name << ' ' << i << ' ' << j;
      }
    }
  }
}

std::vector<BlockType> rounded_formats() {
  std::vector<BlockType> out;
  for (const BlockType& type : kBlockTypes) {
    if (type.elements > 1) out.push_back(type);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, Bf16Products, testing::ValuesIn(rounded_formats()),
                         [](const auto& info) { return std::string(info.param.name); });

// The float formats, whose values are made here: k no multiple of a slab.
TEST(Bf16, FloatFormatsAgainstDouble) {
  const std::int64_t m = 18, n = 30, k = 608;
  const std::vector<float> x = gaussian(m * k, 5), w = gaussian(n * k, 6);
  for (const std::uint32_t type : {1u, 30u}) {
    std::vector<std::uint16_t> stored;
    for (const float value : w) stored.push_back(type == 1 ? half::to_f16(value) : half::to_bf16(value));
    std::vector<float> exact(w.size());
    dequantize_for(type)(stored.data(), exact.data(), n * k);
    for (const KernelTable* table : tables()) {
      std::vector<float> c(static_cast<std::size_t>(m * n));
      table->gemm_bf16[type](packed(*table, x.data(), m, k).data(), m, stored.data(), n, k, c.data(), n);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0, magnitude = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            const double term = double{rounded(x[static_cast<std::size_t>(i * k + p)])} *
                                rounded(exact[static_cast<std::size_t>(j * k + p)]);
            sum += term;
            magnitude += std::abs(term);
          }
          ASSERT_NEAR(c[static_cast<std::size_t>(i * n + j)], sum, 1e-6 * magnitude) << table->name << ' ' << type;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dgemma
