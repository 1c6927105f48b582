// The 16-bit float formats as the block formats store them, on bits, so that they are the same on every machine. In a
// namespace of its own: this folder includes no other, and base/bits.h has its own conversions in `dgemma`.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace dgemma::half {

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Round to nearest even; a NaN stays a NaN.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// Without a branch (loops over it vectorise): the half's fields, moved into a float's, are the value times 2^-112, and
// that product is exact for subnormals too. Only infinities and NaNs need the exponent filled.
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

// Round to nearest even; overflow gives infinity, a NaN stays a NaN.
inline std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
    result = 0x7c00u;
  } else if (magnitude <
             0x38800000u) {  // below 2^-14: adding 0.5 lets the float unit round at the subnormal's last bit
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    result = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  }
  return static_cast<std::uint16_t>(sign | result);
}

// A half at any address, little-endian.
inline float load(const std::uint8_t* bytes) {
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return from_f16(bits);
}

// Stores `value` as a half and returns what was stored, which is what a decoder will see.
inline float store(float value, std::uint8_t* bytes) {
  const std::uint16_t bits = to_f16(value);
  std::memcpy(bytes, &bits, sizeof bits);
  return from_f16(bits);
}

}  // namespace dgemma::half
