// Encoders: byte for byte against the Python package `gguf` where it has one, else by the error that llama.cpp's make
// on the same matrices (tests/kernels/golden/case.json).
#include "kernels/quantize.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "golden_blocks.h"
#include "kernels/dequantize.h"

namespace dgemma {
namespace {

// [64, 512], the bits that make_block_goldens.py used: sums of twelve 16-bit numbers of splitmix64, or their cubes.
std::vector<float> golden_matrix(bool cubed) {
  std::vector<float> values(64 * 512);
  std::uint64_t state = 20261201;
  for (float& value : values) {
    std::int64_t sum = 0;
    for (int word = 0; word < 3; ++word) {
      state += 0x9E3779B97F4A7C15u;
      std::uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      z ^= z >> 31;
      for (int part = 0; part < 4; ++part) sum += static_cast<std::int64_t>((z >> (16 * part)) & 0xffffu);
    }
    const double x = static_cast<double>(sum - 6 * 65535) / 65536.0;
    value = static_cast<float>(cubed ? x * x * x : x);
  }
  return values;
}

struct Encoded {
  std::vector<char> blocks;
  std::vector<float> decoded;
};

Encoded encode(const BlockType& type, const std::vector<float>& values) {
  const auto elements = static_cast<std::int64_t>(values.size());
  Encoded result;
  result.blocks.resize(values.size() / static_cast<std::size_t>(type.elements) * static_cast<std::size_t>(type.bytes));
  result.decoded.resize(values.size());
  quantize_for(type.id)(values.data(), result.blocks.data(), elements);
  dequantize_for(type.id)(result.blocks.data(), result.decoded.data(), elements);
  return result;
}

const BlockType& block_type(const std::string& name) {
  for (const BlockType& type : kBlockTypes) {
    if (type.name == name) return type;
  }
  throw std::out_of_range(name);
}

TEST(Quantize, SimpleFormatsHaveTheBytesOfTheGgufPackage) {
  for (const std::string matrix : {"gauss", "cubed"}) {
    const std::vector<float> values = golden_matrix(matrix == "cubed");
    for (const std::string name : {"q8_0", "q4_0", "q4_1", "q5_0", "q5_1"}) {
      const std::vector<char> expected = read_golden("encoded_" + name + "_" + matrix + ".bin");
      ASSERT_EQ(expected.size(), static_cast<std::size_t>(32 * block_type(name).bytes));
      const Encoded found = encode(block_type(name), values);
      ASSERT_EQ(std::vector<char>(found.blocks.begin(), found.blocks.begin() + static_cast<long>(expected.size())),
                expected)
          << name << " " << matrix;
    }
  }
}

TEST(Quantize, ErrorsAreAtMostTheReferences) {
  const nlohmann::json errors = read_golden_case()["errors"];
  for (const std::string matrix : {"gauss", "cubed"}) {
    const std::vector<float> values = golden_matrix(matrix == "cubed");
    for (const std::string name : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"}) {
      std::string lower = name;
      for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      const Encoded found = encode(block_type(lower), values);
      double squares = 0, weighted = 0, weights = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double x = values[i], e = found.decoded[i] - x;
        squares += e * e;
        weighted += x * x * e * e;
        weights += x * x;
      }
      const double rms = std::sqrt(squares / static_cast<double>(values.size()));
      const double weighted_rms = std::sqrt(weighted / weights);
      const auto& reference = errors[matrix][name];
      RecordProperty(matrix + "_" + name, std::to_string(rms));
      EXPECT_LE(rms, reference["rms"].get<double>() * (1 + 1e-6)) << name << " " << matrix;
      EXPECT_LE(weighted_rms, reference["weighted"].get<double>() * (1 + 1e-6)) << name << " " << matrix;
    }
  }
}

TEST(Quantize, SixteenBitFormatsRoundToNearestEven) {
  const float values[] = {1.0f, 1.0f + 0x1p-8f, 1.0f + 3 * 0x1p-8f, -0.0f, std::numeric_limits<float>::infinity()};
  std::uint16_t bits[5];
  quantize_bf16(values, bits, 5);
  EXPECT_EQ(bits[0], 0x3f80);
  EXPECT_EQ(bits[1], 0x3f80);  // half way: to even
  EXPECT_EQ(bits[2], 0x3f82);
  EXPECT_EQ(bits[3], 0x8000);
  EXPECT_EQ(bits[4], 0x7f80);
  const float halves[] = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 65519.0f, 65520.0f, 0x1p-25f};
  quantize_f16(halves, bits, 5);
  EXPECT_EQ(bits[0], 0x3c00);
  EXPECT_EQ(bits[1], 0x3c02);
  EXPECT_EQ(bits[2], 0x7bff);
  EXPECT_EQ(bits[3], 0x7c00);
  EXPECT_EQ(bits[4], 0x0000);
}

TEST(Quantize, ConstantBlocksSurvive) {  // zero exactly, others to the format's step
  for (const BlockType& type : kBlockTypes) {
    if (quantize_for(type.id) == nullptr) continue;
    for (const float constant : {0.0f, 1.5f, -1.5f, 1e-3f}) {
      const std::vector<float> values(static_cast<std::size_t>(2 * type.elements), constant);
      for (const float value : encode(type, values).decoded) {
        ASSERT_NEAR(value, constant, std::abs(constant) * 0.01f) << type.name;
      }
    }
  }
}

TEST(Quantize, AnyBitsAreAccepted) {  // infinities, NaNs, the largest and the smallest numbers
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const BlockType& type : kBlockTypes) {
    if (quantize_for(type.id) == nullptr) continue;
    for (const float odd : {inf, -inf, nan, 3e38f, -3e38f, 1e-45f, 1e-38f}) {
      std::vector<float> values(static_cast<std::size_t>(type.elements), 0.25f);
      values[0] = odd;
      encode(type, values);
      encode(type, std::vector<float>(static_cast<std::size_t>(type.elements), odd));
    }
  }
}

TEST(Quantize, IdsWithoutAnEncoderHaveNoFunction) {
  for (const std::uint32_t id : {0u, 4u, 10u, 20u, 24u, 39u, 40u, ~0u}) EXPECT_EQ(quantize_for(id), nullptr) << id;
}

}  // namespace
}  // namespace dgemma
