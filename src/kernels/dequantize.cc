// The formats without super-blocks, and the choice by type id; blocks of 256 are in dequantize_k.cc.
#include "kernels/dequantize.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/half.h"
#include "kernels/quant_blocks.h"

namespace dgemma {
namespace {

using namespace quant;

// y[i] = d (code - 16 + back) + m for the five-bit codes of a Q5_0 or Q5_1 block: element i has bit i of `high` above
// its nibble. Eight codes at a time are made in a word: each byte of it gets the eight bits, keeps its own, and carries
// it to bit 7.
inline void decode_five_bits(const Byte* high, const Byte* nibbles, float back, float d, float m, float* __restrict y) {
  constexpr std::uint64_t kEach = 0x0101010101010101u;
  for (int part = 0; part < 4; ++part) {
    std::uint64_t q;
    std::memcpy(&q, nibbles + 8 * (part % 2), sizeof q);
    const std::uint64_t low = (part < 2 ? q : q >> 4) & (15 * kEach);
    const std::uint64_t own = (high[part] * kEach) & 0x8040201008040201u;
    const std::uint64_t word = low | (((own + 127 * kEach) >> 3) & (16 * kEach));
    Byte codes[8];
    std::memcpy(codes, &word, sizeof word);
    for (int i = 0; i < 8; ++i) y[8 * part + i] = d * (static_cast<float>(codes[i] - 16) + back) + m;
  }
}

// A scale byte of MXFP4 as 2^(e - 128): the table of entries is doubled.
inline float half_power_of_two(Byte exponent) {
  return std::bit_cast<float>(exponent < 2 ? std::uint32_t{0x00200000} << exponent
                                           : std::uint32_t{exponent - 1u} << 23);
}

// A scale byte of NVFP4, halved because the table of entries is doubled. Bit 7 is no sign; ggml ignores it.
inline float half_of_unsigned_e4m3(Byte bits) {
  if (bits == 0 || bits == 0x7f) return 0.0f;
  const std::uint32_t exponent = (bits >> 3) & 15u;
  const std::uint32_t mantissa = bits & 7u;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>(((exponent + 119) << 23) | (mantissa << 20));
}

}  // namespace

void dequantize_f32(const void* blocks, float* out, std::int64_t elements) {
  std::memcpy(out, blocks, static_cast<std::size_t>(elements) * sizeof(float));
}

void dequantize_f16(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<1, 2>(blocks, out, elements, [](const Byte* in, float* y) { y[0] = half::load(in); });
}

void dequantize_bf16(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<1, 2>(blocks, out, elements, [](const Byte* in, float* y) {
    std::uint16_t bits;
    std::memcpy(&bits, in, sizeof bits);
    y[0] = half::from_bf16(bits);
  });
}

void dequantize_q4_0(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 18>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in);
    const Byte* q = in + 2;
    for (int i = 0; i < 16; ++i) y[i] = d * static_cast<float>((q[i] & 15) - 8);
    for (int i = 0; i < 16; ++i) y[i + 16] = d * static_cast<float>((q[i] >> 4) - 8);
  });
}

void dequantize_q4_1(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 20>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in);
    const float m = half::load(in + 2);
    const Byte* q = in + 4;
    for (int i = 0; i < 16; ++i) y[i] = d * static_cast<float>(q[i] & 15) + m;
    for (int i = 0; i < 16; ++i) y[i + 16] = d * static_cast<float>(q[i] >> 4) + m;
  });
}

void dequantize_q5_0(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 22>(blocks, out, elements, [](const Byte* in, float* y) {
    decode_five_bits(in + 2, in + 6, -0.0f, half::load(in), -0.0f, y);  // adding -0.0 changes nothing
  });
}

void dequantize_q5_1(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 24>(blocks, out, elements, [](const Byte* in, float* y) {
    decode_five_bits(in + 4, in + 8, 16.0f, half::load(in), half::load(in + 2), y);
  });
}

void dequantize_q8_0(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 34>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in);
    const Byte* q = in + 2;
    for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<std::int8_t>(q[i]));
  });
}

void dequantize_iq4_nl(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 18>(blocks, out, elements,
                         [](const Byte* in, float* y) { decode_table16<32>(in + 2, kIq4Table, half::load(in), y); });
}

void dequantize_mxfp4(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<32, 17>(blocks, out, elements, [](const Byte* in, float* y) {
    decode_table16<32>(in + 1, kE2m1Doubled, half_power_of_two(in[0]), y);
  });
}

void dequantize_nvfp4(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<64, 36>(blocks, out, elements, [](const Byte* in, float* y) {
    for (int group = 0; group < 4; ++group) {
      decode_table16<16>(in + 4 + 8 * group, kE2m1Doubled, half_of_unsigned_e4m3(in[group]), y + 16 * group);
    }
  });
}

DequantizeFunction dequantize_for(std::uint32_t ggml_type) {
  switch (ggml_type) {
    case 0:
      return dequantize_f32;
    case 1:
      return dequantize_f16;
    case 2:
      return dequantize_q4_0;
    case 3:
      return dequantize_q4_1;
    case 6:
      return dequantize_q5_0;
    case 7:
      return dequantize_q5_1;
    case 8:
      return dequantize_q8_0;
    case 10:
      return dequantize_q2_k;
    case 11:
      return dequantize_q3_k;
    case 12:
      return dequantize_q4_k;
    case 13:
      return dequantize_q5_k;
    case 14:
      return dequantize_q6_k;
    case 20:
      return dequantize_iq4_nl;
    case 23:
      return dequantize_iq4_xs;
    case 30:
      return dequantize_bf16;
    case 39:
      return dequantize_mxfp4;
    case 40:
      return dequantize_nvfp4;
    default:
      return nullptr;
  }
}

}  // namespace dgemma
