// f16 and bf16 to f32 for kernels, which include nothing but themselves.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace dgemma {

inline float half_to_float(std::uint16_t bits) {
  // The half's exponent and mantissa, moved into a float and scaled by 2^112, are right for normals and subnormals
  // alike.
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  if ((bits & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | rest);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f) | sign);
}

inline std::uint16_t load_u16(const std::uint8_t* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

inline float load_half(const std::uint8_t* p) { return half_to_float(load_u16(p)); }

}  // namespace dgemma
