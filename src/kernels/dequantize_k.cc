// The super-block formats: 256 elements share a half scale, sub-blocks of 16 or 32 have small integer scales of it.
#include <cstdint>
#include <cstring>

#include "kernels/dequantize.h"
#include "kernels/half.h"
#include "kernels/quant_blocks.h"

namespace dgemma {

using namespace quant;

// u8 sc[16] (scale low, min high nibble), u8 q[64], d, dmin. Two-bit field k of q[32 h + l] is element 128 h + 32 k +
// l.
void dequantize_q2_k(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<256, 84>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in + 80);
    const float dmin = half::load(in + 82);
    for (int group = 0; group < 16; ++group) {
      const Byte* q = in + 16 + 32 * (group / 8) + 16 * (group % 2);
      const int shift = 2 * (group / 2 % 4);
      const float scale = d * static_cast<float>(in[group] & 15);
      const float min = dmin * static_cast<float>(in[group] >> 4);
      for (int i = 0; i < 16; ++i) y[16 * group + i] = scale * static_cast<float>((q[i] >> shift) & 3) - min;
    }
  });
}

// hm[32], q[64], S[12], d. The third bit of element 32 b + l is bit b of hm[l]; where it is clear, 4 is subtracted.
void dequantize_q3_k(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<256, 110>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in + 108);
    const Byte* packed = in + 96;
    for (int group = 0; group < 16; ++group) {
      const Byte* q = in + 32 + 32 * (group / 8) + 16 * (group % 2);
      const Byte* high = in + 16 * (group % 2);
      const int shift = 2 * (group / 2 % 4);
      const int bit = 1 << (group / 2);
      const int low = (packed[group % 8] >> (group < 8 ? 0 : 4)) & 15;
      const int top = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
      const float scale = d * static_cast<float>(low + 16 * top - 32);
      for (int i = 0; i < 16; ++i) {
        const int code = ((q[i] >> shift) & 3) - ((high[i] & bit) != 0 ? 0 : 4);
        y[16 * group + i] = scale * static_cast<float>(code);
      }
    }
  });
}

// d, dmin, S[12], q[128]. 32 bytes of q hold sub-block 2 p in their low and 2 p + 1 in their high nibbles.
void dequantize_q4_k(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<256, 144>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in);
    const float dmin = half::load(in + 2);
    Byte scales[8], mins[8];
    unpack_scale_min(in + 4, scales, mins);
    for (int pair = 0; pair < 4; ++pair) {
      const Byte* q = in + 16 + 32 * pair;
      const float scale0 = d * static_cast<float>(scales[2 * pair]);
      const float scale1 = d * static_cast<float>(scales[2 * pair + 1]);
      const float min0 = dmin * static_cast<float>(mins[2 * pair]);
      const float min1 = dmin * static_cast<float>(mins[2 * pair + 1]);
      float* y0 = y + 64 * pair;
      for (int i = 0; i < 32; ++i) y0[i] = scale0 * static_cast<float>(q[i] & 15) - min0;
      for (int i = 0; i < 32; ++i) y0[i + 32] = scale1 * static_cast<float>(q[i] >> 4) - min1;
    }
  });
}

// As Q4_K with H[32] before q: bit b of H[l] is the fifth bit of element 32 b + l.
void dequantize_q5_k(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<256, 176>(blocks, out, elements, [](const Byte* in, float* __restrict y) {
    const float d = half::load(in);
    const float dmin = half::load(in + 2);
    Byte scales[8], mins[8];
    unpack_scale_min(in + 4, scales, mins);
    const Byte* high = in + 16;
    for (int block = 0; block < 8; ++block) {
      const Byte* q = in + 48 + 32 * (block / 2);
      const int shift = 4 * (block % 2);
      const float scale = d * static_cast<float>(scales[block]);
      const float min = dmin * static_cast<float>(mins[block]);
      for (int i = 0; i < 32; ++i) {
        const int code = ((q[i] >> shift) & 15) | (((high[i] >> block) & 1) << 4);
        y[32 * block + i] = scale * static_cast<float>(code) - min;
      }
    }
  });
}

namespace {

// Elements 32 kQuarter .. + 31 of a half of Q6_K; the shifts are constants, which the vectoriser needs.
template <int kQuarter>
inline void decode_q6_k_quarter(const Byte* low, const Byte* high, const Byte* scales, float d, float* __restrict y) {
  low += 32 * (kQuarter % 2);
  for (int part = 0; part < 2; ++part) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[2 * kQuarter + part]));
    for (int i = 16 * part; i < 16 * part + 16; ++i) {
      const Byte code =
          static_cast<Byte>(((low[i] >> (kQuarter / 2 * 4)) & 15) | (((high[i] >> (2 * kQuarter)) & 3) << 4));
      y[32 * kQuarter + i] = scale * static_cast<float>(code - 32);
    }
  }
}

}  // namespace

// ql[128], qh[64], int8 sc[16], d. In each half of 128: quarter k takes its low nibbles from ql[32 (k mod 2) + l] (low
// for k < 2, high after) and its top two bits from field k of qh[l].
void dequantize_q6_k(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<256, 210>(blocks, out, elements, [](const Byte* in, float* y) {
    const float d = half::load(in + 208);
    for (int part = 0; part < 2; ++part) {
      const Byte* low = in + 64 * part;
      const Byte* high = in + 128 + 32 * part;
      const Byte* scales = in + 192 + 8 * part;
      float* y_part = y + 128 * part;
      decode_q6_k_quarter<0>(low, high, scales, d, y_part);
      decode_q6_k_quarter<1>(low, high, scales, d, y_part);
      decode_q6_k_quarter<2>(low, high, scales, d, y_part);
      decode_q6_k_quarter<3>(low, high, scales, d, y_part);
    }
  });
}

// d, u16 sh, u8 sl[4], q[128]: sub-blocks of 32 as in IQ4_NL, with six-bit scales less 32.
void dequantize_iq4_xs(const void* blocks, float* out, std::int64_t elements) {
  for_each_block<256, 136>(blocks, out, elements, [](const Byte* in, float* y) {
    const float d = half::load(in);
    std::uint16_t high;
    std::memcpy(&high, in + 2, sizeof high);
    for (int block = 0; block < 8; ++block) {
      const int low = (in[4 + block / 2] >> (4 * (block % 2))) & 15;
      const int scale = low + 16 * ((high >> (2 * block)) & 3) - 32;
      decode_table16<32>(in + 8 + 16 * block, kIq4Table, d * static_cast<float>(scale), y + 32 * block);
    }
  });
}

}  // namespace dgemma
