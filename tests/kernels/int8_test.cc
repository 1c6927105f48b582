// Products of stored blocks with 8-bit activations, for every table and format, against double precision on the values
// that dequantize gives (which the gguf package vouches for).
#include "kernels/int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "golden_blocks.h"
#include "kernels/dequantize.h"
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

struct Quantized {
  std::vector<std::int8_t> codes;
  std::vector<ActivationBlock> blocks;
};

Quantized quantized(const KernelTable& table, const std::vector<float>& x) {
  Quantized out{std::vector<std::int8_t>(x.size()), std::vector<ActivationBlock>(x.size() / kActivationBlock)};
  table.quantize_activations(x.data(), out.codes.data(), out.blocks.data(), static_cast<std::int64_t>(x.size()));
  return out;
}

TEST(Int8, ActivationsAreRoundedToTheNearestOf127Steps) {
  std::vector<float> x = gaussian(320, 1);
  std::fill(x.begin() + 64, x.begin() + 96, 0.0f);
  x[100] = 1e4f;  // an outlier must not reach beyond its block
  for (const KernelTable* table : tables()) {
    const Quantized q = quantized(*table, x);
    for (std::size_t b = 0; b < q.blocks.size(); ++b) {
      double largest = 0;
      int sums[2] = {0, 0};
      for (std::size_t i = 0; i < 32; ++i) {
        largest = std::max(largest, std::abs(double{x[32 * b + i]}));
        sums[i / 16] += q.codes[32 * b + i];
        EXPECT_NEAR(q.blocks[b].scale * q.codes[32 * b + i], x[32 * b + i], 0.5001 * q.blocks[b].scale) << table->name;
      }
      EXPECT_NEAR(q.blocks[b].scale, largest / 127, 1e-6 * largest) << table->name;
      EXPECT_EQ(q.blocks[b].sums[0], sums[0] + sums[1]) << table->name;
      EXPECT_EQ(q.blocks[b].sums[1], sums[0]) << table->name;
      EXPECT_EQ(q.blocks[b].sums[2], sums[1]) << table->name;
    }
  }
}

class Int8Products : public testing::TestWithParam<BlockType> {};

TEST_P(Int8Products, AgainstDouble) {
  const BlockType type = GetParam();
  const std::vector<char> file = read_golden(std::string(type.name) + ".bin");
  const int per_row = type.elements == 256 ? 3 : 704 / type.elements;  // past one slab, and not a multiple of it
  const std::int64_t k = std::int64_t{per_row} * type.elements;
  for (const auto [m, n] : {std::array{1, 32}, {13, 32}, {6, 17}, {7, 1}, {3, 20}}) {
    std::vector<char> weights;
    for (int i = 0; i < n * per_row; ++i) {
      const auto from = file.begin() + i * 7 % 64 * type.bytes;
      weights.insert(weights.end(), from, from + type.bytes);
    }
    std::vector<float> w(static_cast<std::size_t>(n * k));
    dequantize_for(type.id)(weights.data(), w.data(), n * k);
    const std::vector<float> x = gaussian(m * k, 2);
    for (const KernelTable* table : tables()) {
      ASSERT_NE(table->gemm_int8[type.id], nullptr) << table->name;
      const Quantized q = quantized(*table, x);
      std::vector<float> c(static_cast<std::size_t>(m * (n + 1)), -1.0f);
      table->gemm_int8[type.id](q.codes.data(), q.blocks.data(), m, weights.data(), n, k, c.data(), n + 1);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          double sum = 0, magnitude = 0;
          for (std::int64_t b = 0; b < k / 32; ++b) {
            double largest = 0, activations = 0;
            for (std::int64_t p = 32 * b; p < 32 * b + 32; ++p) {
              const double value = double{q.blocks[static_cast<std::size_t>(i * k / 32 + b)].scale} *
                                   q.codes[static_cast<std::size_t>(i * k + p)];
              sum += value * w[static_cast<std::size_t>(j * k + p)];
              largest = std::max(largest, std::abs(double{w[static_cast<std::size_t>(j * k + p)]}));
              activations += std::abs(value);
            }
            magnitude += largest * activations;
          }
          ASSERT_NEAR(c[static_cast<std::size_t>(i * (n + 1) + j)], sum, 1e-6 * magnitude)
              << table->name << " row " << i << " column " << j << " of " << m << " x " << n;
        }
        ASSERT_EQ(c[static_cast<std::size_t>(i * (n + 1) + n)], -1.0f) << table->name << ": wrote past the columns";
      }
    }
  }
}

TEST_P(Int8Products, BitsDoNotDependOnTheTile) {
  const BlockType type = GetParam();
  const std::vector<char> file = read_golden(std::string(type.name) + ".bin");
  const int per_row = 64 / 32, m = 11, n = 32;
  const std::int64_t k = std::int64_t{per_row} * type.elements;
  const std::vector<float> x = gaussian(m * k, 3);
  for (const KernelTable* table : tables()) {
    const Quantized q = quantized(*table, x);
    const Int8Gemm gemm = table->gemm_int8[type.id];
    std::vector<float> whole(m * n), one(1);
    gemm(q.codes.data(), q.blocks.data(), m, file.data(), n, k, whole.data(), n);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        gemm(q.codes.data() + i * k, q.blocks.data() + i * k / 32, 1, file.data() + j * per_row * type.bytes, 1, k,
             one.data(), 1);
        ASSERT_EQ(one[0], whole[static_cast<std::size_t>(i * n + j)]) << table->name << ' ' << i << ' ' << j;
      }
    }
  }
}

std::vector<BlockType> block_formats() {
  std::vector<BlockType> out;
  for (const BlockType& type : kBlockTypes) {
    if (type.elements > 1) out.push_back(type);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, Int8Products, testing::ValuesIn(block_formats()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dgemma
