#include "kernels/dequantize.h"

#include <cmath>
#include <cstring>

#include "kernels/half.h"

namespace dgemma {
namespace {

using Byte = std::uint8_t;

// Values of the 4-bit non-uniform grid (IQ4_NL, IQ4_XS) and of doubled E2M1 (MXFP4, NVFP4).
constexpr float kGrid[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr float kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Runs one block function over all blocks of a row.
template <int kElements, int kBytes, void (*kBlock)(const Byte*, float*)>
void each_block(const void* blocks, float* out, std::int64_t elements) {
  const Byte* block = static_cast<const Byte*>(blocks);
  for (std::int64_t i = 0; i < elements; i += kElements, block += kBytes) kBlock(block, out + i);
}

void copy_f32(const void* blocks, float* out, std::int64_t elements) {
  std::memcpy(out, blocks, static_cast<std::size_t>(elements) * sizeof(float));
}

void from_f16(const Byte* block, float* out) { *out = load_half(block); }

void from_bf16(const Byte* block, float* out) {
  *out = std::bit_cast<float>(static_cast<std::uint32_t>(load_u16(block)) << 16);
}

void q8_0(const Byte* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// 16 bytes of nibbles: the low ones are elements 0..15, the high ones 16..31.
template <typename Value>
inline void nibbles(const Byte* q, float* out, const Value& value) {
  for (int i = 0; i < 16; ++i) {
    out[i] = value(q[i] & 15, i);
    out[i + 16] = value(q[i] >> 4, i + 16);
  }
}

void q4_0(const Byte* block, float* out) {
  const float d = load_half(block);
  nibbles(block + 2, out, [d](int n, int) { return d * static_cast<float>(n - 8); });
}

void q4_1(const Byte* block, float* out) {
  const float d = load_half(block), m = load_half(block + 2);
  nibbles(block + 4, out, [d, m](int n, int) { return d * static_cast<float>(n) + m; });
}

void q5_0(const Byte* block, float* out) {
  const float d = load_half(block);
  std::uint32_t high;
  std::memcpy(&high, block + 2, sizeof high);
  nibbles(block + 6, out, [=](int n, int i) { return d * (static_cast<float>(n | ((high >> i & 1) << 4)) - 16.0f); });
}

void q5_1(const Byte* block, float* out) {
  const float d = load_half(block), m = load_half(block + 2);
  std::uint32_t high;
  std::memcpy(&high, block + 4, sizeof high);
  nibbles(block + 8, out, [=](int n, int i) { return d * static_cast<float>(n | ((high >> i & 1) << 4)) + m; });
}

void iq4_nl(const Byte* block, float* out) {
  const float d = load_half(block);
  nibbles(block + 2, out, [d](int n, int) { return d * kGrid[n]; });
}

void mxfp4(const Byte* block, float* out) {
  const float scale =
      std::ldexp(1.0f, static_cast<int>(block[0]) - 128);  // half of the power of two: the table is doubled
  nibbles(block + 1, out, [scale](int n, int) { return scale * kDoubledE2m1[n]; });
}

void nvfp4(const Byte* block, float* out) {
  for (int group = 0; group < 4; ++group) {
    const int bits = block[group];
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    float scale = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9f
                                : std::ldexp(1.0f + static_cast<float>(mantissa) / 8, exponent - 7);
    if (bits == 0x7f) scale = 0;
    const Byte* q = block + 4 + 8 * group;
    float* y = out + 16 * group;
    for (int i = 0; i < 8; ++i) {
      y[i] = 0.5f * scale * kDoubledE2m1[q[i] & 15];
      y[i + 8] = 0.5f * scale * kDoubledE2m1[q[i] >> 4];
    }
  }
}

// 6-bit scale and minimum of sub-block j, packed into the 12 bytes s (Q4_K, Q5_K).
struct ScaleMinimum {
  int scale, minimum;
};
inline ScaleMinimum scale_minimum(const Byte* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6 << 4), (s[j + 4] >> 4) | (s[j] >> 6 << 4)};
}

void q4_k(const Byte* block, float* out) {
  const float d = load_half(block), dmin = load_half(block + 2);
  for (int pair = 0; pair < 4; ++pair) {  // 32 bytes hold sub-blocks 2 pair (low nibbles) and 2 pair + 1 (high)
    const Byte* q = block + 16 + 32 * pair;
    const auto [s0, m0] = scale_minimum(block + 4, 2 * pair);
    const auto [s1, m1] = scale_minimum(block + 4, 2 * pair + 1);
    const float d0 = d * static_cast<float>(s0), d1 = d * static_cast<float>(s1);
    const float b0 = dmin * static_cast<float>(m0), b1 = dmin * static_cast<float>(m1);
    float* y = out + 64 * pair;
    for (int i = 0; i < 32; ++i) {
      y[i] = d0 * static_cast<float>(q[i] & 15) - b0;
      y[i + 32] = d1 * static_cast<float>(q[i] >> 4) - b1;
    }
  }
}

void q5_k(const Byte* block, float* out) {
  const float d = load_half(block), dmin = load_half(block + 2);
  const Byte* high = block + 16;
  for (int j = 0; j < 8; ++j) {
    const Byte* q = block + 48 + 32 * (j / 2);
    const auto [s, m] = scale_minimum(block + 4, j);
    const float dj = d * static_cast<float>(s), bj = dmin * static_cast<float>(m);
    const int shift = 4 * (j % 2);
    for (int i = 0; i < 32; ++i) {
      out[32 * j + i] = dj * static_cast<float>((q[i] >> shift & 15) | (high[i] >> j & 1) << 4) - bj;
    }
  }
}

void q6_k(const Byte* block, float* out) {
  const float d = load_half(block + 208);
  for (int half = 0; half < 2; ++half) {
    const Byte* low = block + 64 * half;
    const Byte* high = block + 128 + 32 * half;
    for (int k = 0; k < 4; ++k) {
      float* y = out + 128 * half + 32 * k;
      for (int i = 0; i < 32; ++i) {
        const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + 8 * half + 2 * k + i / 16]));
        const int bits = (low[32 * (k % 2) + i] >> 4 * (k / 2) & 15) | (high[i] >> 2 * k & 3) << 4;
        y[i] = scale * static_cast<float>(bits - 32);
      }
    }
  }
}

void q2_k(const Byte* block, float* out) {
  const float d = load_half(block + 80), dmin = load_half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int bits = block[16 + 32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
    const int packed = block[i / 16];
    out[i] = d * static_cast<float>(packed & 15) * static_cast<float>(bits) - dmin * static_cast<float>(packed >> 4);
  }
}

void q3_k(const Byte* block, float* out) {
  const float d = load_half(block + 108);
  const Byte* s = block + 96;
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16;
    const int low = group < 8 ? s[group % 8] & 15 : s[group % 8] >> 4;
    const int scale = (low | (s[8 + group % 4] >> 2 * (group / 4) & 3) << 4) - 32;
    int bits = block[32 + 32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
    if ((block[i % 32] >> (i / 32) & 1) == 0) bits -= 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(bits);
  }
}

void iq4_xs(const Byte* block, float* out) {
  const float d = load_half(block);
  const int high = load_u16(block + 2);
  for (int b = 0; b < 8; ++b) {
    const int scale = (block[4 + b / 2] >> 4 * (b % 2) & 15) | (high >> 2 * b & 3) << 4;
    const float db = d * static_cast<float>(scale - 32);
    nibbles(block + 8 + 16 * b, out + 32 * b, [db](int n, int) { return db * kGrid[n]; });
  }
}

}  // namespace

DequantizeFunction dequantize_for(std::uint32_t ggml_type) {
  switch (ggml_type) {
    case 0:
      return copy_f32;
    case 1:
      return each_block<1, 2, from_f16>;
    case 2:
      return each_block<32, 18, q4_0>;
    case 3:
      return each_block<32, 20, q4_1>;
    case 6:
      return each_block<32, 22, q5_0>;
    case 7:
      return each_block<32, 24, q5_1>;
    case 8:
      return each_block<32, 34, q8_0>;
    case 10:
      return each_block<256, 84, q2_k>;
    case 11:
      return each_block<256, 110, q3_k>;
    case 12:
      return each_block<256, 144, q4_k>;
    case 13:
      return each_block<256, 176, q5_k>;
    case 14:
      return each_block<256, 210, q6_k>;
    case 20:
      return each_block<32, 18, iq4_nl>;
    case 23:
      return each_block<256, 136, iq4_xs>;
    case 30:
      return each_block<1, 2, from_bf16>;
    case 39:
      return each_block<32, 17, mxfp4>;
    case 40:
      return each_block<64, 36, nvfp4>;
    default:
      return nullptr;
  }
}

}  // namespace dgemma
