// What the decoders and encoders of the block formats share: the walk over blocks, the tables, the packed scales.
#pragma once

#include <cstdint>

namespace dgemma::quant {

using Byte = std::uint8_t;

// Calls decode(block, out of that block) for each block of kElements in kBytes.
template <int kElements, int kBytes, typename Decode>
inline void for_each_block(const void* blocks, float* out, std::int64_t elements, Decode decode) {
  const auto* in = static_cast<const Byte*>(blocks);
  const std::int64_t count = elements / kElements;
  for (std::int64_t i = 0; i < count; ++i) decode(in + i * kBytes, out + i * kElements);
}

// The same in the other direction: encode(in of a block, the block's bytes).
template <int kElements, int kBytes, typename Encode>
inline void for_each_block_out(const float* in, void* blocks, std::int64_t elements, Encode encode) {
  auto* out = static_cast<Byte*>(blocks);
  const std::int64_t count = elements / kElements;
  for (std::int64_t i = 0; i < count; ++i) encode(in + i * kElements, out + i * kBytes);
}

// The whole part of value within 0 .. top; a NaN gives 0.
inline Byte truncated_code(float value, int top) {
  const float capped = value < static_cast<float>(top) ? value : static_cast<float>(top);
  return static_cast<Byte>(capped > 0.0f ? static_cast<int>(capped) : 0);
}

// The sixteen levels of IQ4_NL and IQ4_XS.
inline constexpr float kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The sixteen E2M1 numbers, doubled so that they are whole; ggml has no negative zero.
inline constexpr float kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// y[i] = d * table[nibble i]: the low nibbles of kCount / 2 bytes first, then the high ones.
template <int kCount>
inline void decode_table16(const Byte* q, const float* table, float d, float* __restrict y) {
  for (int i = 0; i < kCount / 2; ++i) {
    y[i] = d * table[q[i] & 15];
    y[i + kCount / 2] = d * table[q[i] >> 4];
  }
}

// The eight 6-bit (scale, min) pairs of Q4_K and Q5_K in 12 bytes: the first four pairs use the low six bits of bytes
// 0-3 and 4-7; pair j >= 4 keeps its low nibbles in byte j + 4 and its top bits above those of pair j - 4.
inline void unpack_scale_min(const Byte* packed, Byte* scales, Byte* mins) {
  for (int j = 0; j < 4; ++j) {
    scales[j] = packed[j] & 63;
    mins[j] = packed[j + 4] & 63;
    scales[j + 4] = static_cast<Byte>((packed[j + 8] & 15) | ((packed[j] >> 6) << 4));
    mins[j + 4] = static_cast<Byte>((packed[j + 8] >> 4) | ((packed[j + 4] >> 6) << 4));
  }
}

inline void pack_scale_min(const Byte* scales, const Byte* mins, Byte* packed) {
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<Byte>(scales[j] | ((scales[j + 4] >> 4) << 6));
    packed[j + 4] = static_cast<Byte>(mins[j] | ((mins[j + 4] >> 4) << 6));
    packed[j + 8] = static_cast<Byte>((scales[j + 4] & 15) | ((mins[j + 4] & 15) << 4));
  }
}

}  // namespace dgemma::quant
