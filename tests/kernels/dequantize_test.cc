// Every block format against the values of the Python package `gguf`.
#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "golden_blocks.h"
#include "kernels/half.h"

namespace dgemma {
namespace {

constexpr int kGoldenBlocks = 64;

class DequantizeGolden : public testing::TestWithParam<BlockType> {};

TEST_P(DequantizeGolden, EqualsTheGgufPackage) {
  const BlockType type = GetParam();
  const int stride = type.elements == 256 ? 4 : 1;
  const std::vector<char> file = read_golden(std::string(type.name) + ".bin");
  const std::size_t block_bytes = static_cast<std::size_t>(kGoldenBlocks * type.bytes);
  const int kept = type.elements / stride;
  ASSERT_EQ(file.size(), block_bytes + static_cast<std::size_t>(kGoldenBlocks * kept) * sizeof(float));

  // At an odd address, with a guard after the output.
  std::vector<char> blocks(block_bytes + 1);
  std::copy_n(file.begin(), block_bytes, blocks.begin() + 1);
  std::vector<float> found(static_cast<std::size_t>(kGoldenBlocks * type.elements) + 1, 12345.0f);
  const DequantizeFunction dequantize = dequantize_for(type.id);
  ASSERT_NE(dequantize, nullptr);
  dequantize(blocks.data() + 1, found.data(), kGoldenBlocks * type.elements);
  EXPECT_EQ(found.back(), 12345.0f);

  std::vector<float> expected(static_cast<std::size_t>(kGoldenBlocks * kept));
  std::memcpy(expected.data(), file.data() + block_bytes, expected.size() * sizeof(float));
  for (int block = 0; block < kGoldenBlocks; ++block) {
    // A compiler may fuse d q - m into one rounding; the terms then differ by their last bit, and so does the result by
    // that bit of the larger term, which the block's largest value bounds.
    float largest = 0.0f;
    for (int i = 0; i < kept; ++i)
      largest = std::max(largest, std::abs(expected[static_cast<std::size_t>(block * kept + i)]));
    for (int i = 0; i < kept; ++i) {
      const int element = block % stride + i * stride;
      const float value = found[static_cast<std::size_t>(block * type.elements + element)];
      ASSERT_NEAR(value, expected[static_cast<std::size_t>(block * kept + i)], 1e-6f * largest)
          << "block " << block << " element " << element;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DequantizeGolden, testing::ValuesIn(kBlockTypes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Dequantize, EveryHalf) {  // against arithmetic: mantissa times a power of two
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  dequantize_f16(bits.data(), values.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    const int exponent = (i >> 10) & 31, mantissa = i & 1023;
    const float value = values[static_cast<std::size_t>(i)];
    ASSERT_EQ(std::signbit(value), i >= 32768);
    if (exponent == 31) {
      ASSERT_TRUE(mantissa != 0 ? std::isnan(value) : std::isinf(value)) << i;
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    ASSERT_EQ(std::abs(value), magnitude) << i;
    ASSERT_EQ(half::to_f16(value), i);
  }
}

TEST(Dequantize, F32AndBf16AreTheirBits) {
  const float values[] = {0.0f, -1.5f, std::numeric_limits<float>::infinity(), 1e-42f};
  float copy[4];
  dequantize_f32(values, copy, 4);
  EXPECT_EQ(std::memcmp(values, copy, sizeof values), 0);
  const std::uint16_t bits[] = {0x3f80, 0xc020, 0xff80, 0x7fc1};
  dequantize_bf16(bits, copy, 4);
  EXPECT_EQ(copy[0], 1.0f);
  EXPECT_EQ(copy[1], -2.5f);
  EXPECT_EQ(copy[2], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(std::bit_cast<std::uint32_t>(copy[3]), 0x7fc10000u);
}

TEST(Dequantize, OddScaleBytesOfMicroScaledFloats) {  // as ggml has them, all with the entry 1.5 (doubled: 3)
  unsigned char block[36];
  float out[64];
  std::memset(block, 0x33, sizeof block);
  block[0] = 254;
  dequantize_mxfp4(block, out, 32);
  EXPECT_EQ(out[0], 1.5f * 0x1p127f);
  block[0] = 255;
  dequantize_mxfp4(block, out, 32);
  EXPECT_EQ(out[31], std::numeric_limits<float>::infinity());  // 3 * 2^127
  const unsigned char scales[] = {0x7f, 0xff, 0x85, 0x80};
  std::copy_n(scales, 4, block);
  dequantize_nvfp4(block, out, 64);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[16], 1.5f * 480.0f);
  EXPECT_EQ(out[32], 1.5f * 5 * 0x1p-9f);
  EXPECT_EQ(out[48], 0.0f);
}

TEST(Dequantize, EveryByteIsAccepted) {
  for (const BlockType& type : kBlockTypes) {
    for (const int byte : {0x00, 0x7f, 0x80, 0xff}) {
      std::vector<unsigned char> block(static_cast<std::size_t>(type.bytes), static_cast<unsigned char>(byte));
      std::vector<float> out(static_cast<std::size_t>(type.elements), 1.0f);
      dequantize_for(type.id)(block.data(), out.data(), type.elements);
      if (byte == 0) {
        EXPECT_EQ(std::count(out.begin(), out.end(), 0.0f), type.elements) << type.name;
      }
    }
  }
}

TEST(Dequantize, UnknownRetiredAndIntegerIdsHaveNoFunction) {
  for (const std::uint32_t id : {4u, 5u, 9u, 15u, 24u, 26u, 31u, 36u, 41u, 43u, 1000u, ~0u}) {
    EXPECT_EQ(dequantize_for(id), nullptr) << id;
  }
}

}  // namespace
}  // namespace dgemma
