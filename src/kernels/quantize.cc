// The formats without super-blocks, and the choice by type id; blocks of 256 are in quantize_k.cc.
#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/half.h"
#include "kernels/quant_blocks.h"

namespace dgemma {
namespace {

using namespace quant;

inline float inverse(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

// Two halves of 16 codes as nibbles, the first in the low ones; the fifth bits, if any, are dropped.
inline void pack_nibbles(const Byte* codes, Byte* out) {
  for (int i = 0; i < 16; ++i) out[i] = static_cast<Byte>((codes[i] & 15) | ((codes[i + 16] & 15) << 4));
}

inline void pack_fifth_bits(const Byte* codes, Byte* out) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
  std::memcpy(out, &bits, sizeof bits);
}

// Codes 0 .. 2 half_levels - 1 of d (code - half_levels). The value of largest magnitude gets code 0, which reaches one
// step farther than the top code. Returns d.
inline float encode_symmetric(const float* x, int half_levels, Byte* codes) {
  float extreme = 0.0f;
  for (int i = 0; i < 32; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  const float d = extreme / static_cast<float>(-half_levels);
  const float scale = inverse(d);
  const float middle = static_cast<float>(half_levels) + 0.5f;
  for (int i = 0; i < 32; ++i) codes[i] = truncated_code(x[i] * scale + middle, 2 * half_levels - 1);
  return d;
}

// Codes 0 .. top of d code + low, from the smallest value to the largest.
inline void encode_range(const float* x, int top, Byte* codes, float* d, float* low) {
  const auto [smallest, largest] = std::minmax_element(x, x + 32);
  *low = *smallest;
  *d = (*largest - *smallest) / static_cast<float>(top);
  const float scale = inverse(*d);
  for (int i = 0; i < 32; ++i) codes[i] = truncated_code((x[i] - *low) * scale + 0.5f, top);
}

}  // namespace

void quantize_f16(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<1, 2>(in, blocks, elements, [](const float* x, Byte* out) { half::store(x[0], out); });
}

void quantize_bf16(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<1, 2>(in, blocks, elements, [](const float* x, Byte* out) {
    const std::uint16_t bits = half::to_bf16(x[0]);
    std::memcpy(out, &bits, sizeof bits);
  });
}

void quantize_q8_0(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<32, 34>(in, blocks, elements, [](const float* x, Byte* out) {
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
    const float d = largest / 127.0f;
    const float scale = inverse(d);
    half::store(d, out);
    for (int i = 0; i < 32; ++i) {  // to nearest, halves away from zero
      const float scaled = x[i] * scale;
      const Byte magnitude = truncated_code(std::abs(scaled) + 0.5f, 127);
      out[2 + i] = static_cast<Byte>(scaled < 0.0f ? -magnitude : magnitude);
    }
  });
}

void quantize_q4_0(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<32, 18>(in, blocks, elements, [](const float* x, Byte* out) {
    Byte codes[32];
    half::store(encode_symmetric(x, 8, codes), out);
    pack_nibbles(codes, out + 2);
  });
}

void quantize_q4_1(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<32, 20>(in, blocks, elements, [](const float* x, Byte* out) {
    Byte codes[32];
    float d, low;
    encode_range(x, 15, codes, &d, &low);
    half::store(d, out);
    half::store(low, out + 2);
    pack_nibbles(codes, out + 4);
  });
}

void quantize_q5_0(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<32, 22>(in, blocks, elements, [](const float* x, Byte* out) {
    Byte codes[32];
    half::store(encode_symmetric(x, 16, codes), out);
    pack_fifth_bits(codes, out + 2);
    pack_nibbles(codes, out + 6);
  });
}

void quantize_q5_1(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<32, 24>(in, blocks, elements, [](const float* x, Byte* out) {
    Byte codes[32];
    float d, low;
    encode_range(x, 31, codes, &d, &low);
    half::store(d, out);
    half::store(low, out + 2);
    pack_fifth_bits(codes, out + 4);
    pack_nibbles(codes, out + 8);
  });
}

QuantizeFunction quantize_for(std::uint32_t ggml_type) {
  switch (ggml_type) {
    case 1:
      return quantize_f16;
    case 2:
      return quantize_q4_0;
    case 3:
      return quantize_q4_1;
    case 6:
      return quantize_q5_0;
    case 7:
      return quantize_q5_1;
    case 8:
      return quantize_q8_0;
    case 12:
      return quantize_q4_k;
    case 13:
      return quantize_q5_k;
    case 14:
      return quantize_q6_k;
    case 30:
      return quantize_bf16;
    default:
      return nullptr;
  }
}

}  // namespace dgemma
