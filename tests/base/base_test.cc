#include <gtest/gtest.h>

#include <cmath>

#include "base/bits.h"
#include "base/random.h"

namespace dgemma {
namespace {

// Known answers of Philox4x32-10, published with the Random123 library (kat_vectors).
TEST(Random, PhiloxKnownAnswers) {
  const std::array<std::uint32_t, 4> zero{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), zero);
  const std::uint32_t f = 0xffffffffu;
  const std::array<std::uint32_t, 4> ones{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu};
  EXPECT_EQ(philox4x32({f, f, f, f}, {f, f}), ones);
  const std::array<std::uint32_t, 4> pi{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u};
  EXPECT_EQ(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}), pi);
}

TEST(Random, BelowIsUniform) {
  int counts[10] = {};
  for (int i = 0; i < 100000; ++i) ++counts[random_below(7, 3, i, 10)];
  double chi_square = 0;
  for (int count : counts) chi_square += std::pow(count - 10000.0, 2) / 10000.0;
  EXPECT_LT(chi_square, 27.9);  // 9 degrees of freedom, p = 0.001
}

// IEEE 754 facts: every half is exact in f32, and comes back unchanged.
TEST(Bits, HalfRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_f16(value), half);
  }
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);  // tie to even
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
}

TEST(Bits, Bf16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(round_to_bf16(std::sqrt(2816.0f)), 53.0f);
}

}  // namespace
}  // namespace dgemma
