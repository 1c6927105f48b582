// Encoders of the super-block formats. The error that they lower is sum w (x - y)^2 with weights w that grow with |x|:
// a large weight moves the layer's output most. For each sub-block a scale (and offset) is searched by least squares
// from several starts; then the integer scales are searched around the rounded ones, with codes chosen anew for each,
// and the super-block's half scales are fitted to what came out.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/half.h"
#include "kernels/quant_blocks.h"
#include "kernels/quantize.h"

namespace dgemma {
namespace {

using namespace quant;

constexpr int kSuper = 256;

// Rounds of fitting d to the codes and choosing scales and codes again; a round that does not lower the error ends
// them.
constexpr int kRefits = 3;

// value within 0 .. high, then its whole part; a NaN gives one of the ends. Compared as integers, in whose order
// non-negative floats are too: the vectoriser takes these, not comparisons of floats, which could trap.
inline int whole_within(float value, float high) {
  std::int32_t bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t high_bits = std::bit_cast<std::int32_t>(high);
  bits = bits > 0 ? bits : 0;
  bits = bits < high_bits ? bits : high_bits;
  return static_cast<int>(std::bit_cast<float>(bits));
}

// Sum of kCount terms (a power of two) by halving: each step is a vector addition, where a running sum would be a
// chain.
template <int kCount>
inline float folded_sum(float* __restrict terms) {
  if constexpr (kCount == 1) {
    return terms[0];
  } else {
    for (int i = 0; i < kCount / 2; ++i) terms[i] += terms[i + kCount / 2];
    return folded_sum<kCount / 2>(terms);
  }
}

// The half that is stored for a super-block's scale. Subnormal halves are coarse: there it is rounded away from zero,
// so that the largest sub-block stays in reach.
inline float stored_scale(float scale) {
  Byte bytes[2];
  const float nearest = half::store(scale, bytes);
  if (std::abs(nearest) >= 0x1p-14f || std::abs(nearest) >= std::abs(scale)) return nearest;
  return half::store(scale + std::copysign(0x1p-25f, scale), bytes);
}

// ---- Q4_K and Q5_K: y = d sc q - dmin mn, q in 0 .. top, sub-blocks of 32 ----

constexpr int kRange = 32;

// y = scale q - min, min >= 0.
struct RangeFit {
  float scale = 0.0f;
  float min = 0.0f;
};

// The best codes for a fit; returns their weighted error.
float range_codes(const float* x, const float* w, RangeFit fit, int top, float* __restrict codes) {
  const float inverse = fit.scale > 0.0f ? 1.0f / fit.scale : 0.0f;
  const float limit = static_cast<float>(top) + 0.25f;
  float errors[kRange];
  for (int i = 0; i < kRange; ++i) {
    codes[i] = static_cast<float>(whole_within((x[i] + fit.min) * inverse + 0.5f, limit));
    const float e = fit.scale * codes[i] - fit.min - x[i];
    errors[i] = w[i] * e * e;
  }
  return folded_sum<kRange>(errors);
}

// The scale and min of least weighted error for given codes.
RangeFit range_least_squares(const float* x, const float* w, const float* codes) {
  float w_terms[kRange], q_terms[kRange], qq_terms[kRange], x_terms[kRange], xq_terms[kRange];
  for (int i = 0; i < kRange; ++i) {
    w_terms[i] = w[i];
    q_terms[i] = w[i] * codes[i];
    qq_terms[i] = w[i] * codes[i] * codes[i];
    x_terms[i] = w[i] * x[i];
    xq_terms[i] = w[i] * x[i] * codes[i];
  }
  const float sw = folded_sum<kRange>(w_terms);
  const float sq = folded_sum<kRange>(q_terms);
  const float sqq = folded_sum<kRange>(qq_terms);
  const float sx = folded_sum<kRange>(x_terms);
  const float sxq = folded_sum<kRange>(xq_terms);
  RangeFit fit;
  const float determinant = sw * sqq - sq * sq;
  if (determinant > 0.0f) {
    fit.scale = (sw * sxq - sx * sq) / determinant;
    fit.min = (sq * sxq - sqq * sx) / determinant;
  }
  if (fit.min < 0.0f || determinant <= 0.0f) {
    fit.min = 0.0f;
    fit.scale = sqq > 0.0f ? sxq / sqq : 0.0f;
  }
  fit.scale = std::max(fit.scale, 0.0f);
  return fit;
}

RangeFit fit_range(const float* x, const float* w, int top) {
  const auto [smallest, largest] = std::minmax_element(x, x + kRange);
  const float low = std::min(*smallest, 0.0f);
  const float span = *largest - low;
  RangeFit best{0.0f, -low};
  if (!(span > 0.0f)) return best;
  float codes[kRange];
  float best_error = range_codes(x, w, best, top, codes);
  for (int step = -10; step <= 10; ++step) {  // starts that clip a little or leave room
    RangeFit fit{span / (static_cast<float>(top) + 0.1f * static_cast<float>(step)), -low};
    for (int pass = 0; pass < 3; ++pass) {
      const float error = range_codes(x, w, fit, top, codes);
      if (error < best_error) {
        best_error = error;
        best = fit;
      }
      fit = range_least_squares(x, w, codes);
    }
  }
  return best;
}

struct RangeSuper {
  float d = 0.0f;
  float dmin = 0.0f;
  Byte scales[8] = {};
  Byte mins[8] = {};
  float codes[kSuper] = {};
  float error = 0.0f;
};

// Integer scales and codes for given d and dmin.
void choose_range_scales(const float* x, const float* w, const RangeFit* fits, int top, RangeSuper* super) {
  const float inverse = super->d > 0.0f ? 1.0f / super->d : 0.0f;
  const float inverse_min = super->dmin > 0.0f ? 1.0f / super->dmin : 0.0f;
  super->error = 0.0f;
  for (int block = 0; block < 8; ++block) {
    const float* xb = x + kRange * block;
    const float* wb = w + kRange * block;
    const int scale = whole_within(fits[block].scale * inverse + 0.5f, 63.25f);
    const int min = whole_within(fits[block].min * inverse_min + 0.5f, 63.25f);
    float best_error = INFINITY;
    float codes[kRange];
    for (int s = std::max(scale - 2, 0); s <= std::min(scale + 2, 63); ++s) {
      for (int m = std::max(min - 2, 0); m <= std::min(min + 2, 63); ++m) {
        const RangeFit fit{super->d * static_cast<float>(s), super->dmin * static_cast<float>(m)};
        const float error = range_codes(xb, wb, fit, top, codes);
        if (error < best_error) {
          best_error = error;
          super->scales[block] = static_cast<Byte>(s);
          super->mins[block] = static_cast<Byte>(m);
          std::copy_n(codes, kRange, super->codes + kRange * block);
        }
      }
    }
    super->error += best_error;
  }
}

// d and dmin of least weighted error for given integer scales and codes; false when they are not determined.
bool refit_range_super(const float* x, const float* w, const RangeSuper& super, float* d, float* dmin) {
  double saa = 0, sab = 0, sbb = 0, sax = 0, sbx = 0;
  for (int i = 0; i < kSuper; ++i) {
    const double a = super.scales[i / kRange] * super.codes[i];
    const double b = super.mins[i / kRange];
    const double weight = w[i];
    saa += weight * a * a;
    sab += weight * a * b;
    sbb += weight * b * b;
    sax += weight * a * x[i];
    sbx += weight * b * x[i];
  }
  const double determinant = saa * sbb - sab * sab;
  if (!(determinant > 1e-9 * saa * sbb)) return false;
  *d = static_cast<float>((sax * sbb - sbx * sab) / determinant);
  *dmin = static_cast<float>((sax * sab - sbx * saa) / determinant);
  return *d > 0.0f && *dmin >= 0.0f;
}

// The root mean square of a sub-block.
float typical_size(const float* x, int count) {
  float squares = 0.0f;
  for (int i = 0; i < count; ++i) squares += x[i] * x[i];
  return std::sqrt(squares / static_cast<float>(count));
}

RangeSuper encode_range_super(const float* x, int top) {
  float w[kSuper];
  RangeFit fits[8];
  float largest_scale = 0.0f, largest_min = 0.0f;
  for (int block = 0; block < 8; ++block) {
    const float typical = typical_size(x + kRange * block, kRange);
    for (int i = kRange * block; i < kRange * (block + 1); ++i) w[i] = typical > 0.0f ? typical + std::abs(x[i]) : 1.0f;
    fits[block] = fit_range(x + kRange * block, w + kRange * block, top);
    largest_scale = std::max(largest_scale, fits[block].scale);
    largest_min = std::max(largest_min, fits[block].min);
  }
  RangeSuper best;
  best.d = stored_scale(largest_scale / 63.0f);
  best.dmin = stored_scale(largest_min / 63.0f);
  choose_range_scales(x, w, fits, top, &best);
  for (int refit = 0; refit < kRefits; ++refit) {
    RangeSuper next;
    if (!refit_range_super(x, w, best, &next.d, &next.dmin)) break;
    next.d = stored_scale(next.d);
    next.dmin = stored_scale(next.dmin);
    choose_range_scales(x, w, fits, top, &next);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

// ---- Q6_K: y = d sc (q - 32), sub-blocks of 16; sc is signed ----

constexpr int kSigned = 16;

// The best codes, -32 .. 31, for a scale; returns their weighted error.
float signed_codes(const float* x, const float* w, float scale, float* __restrict codes) {
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  float errors[kSigned];
  for (int i = 0; i < kSigned; ++i) {
    codes[i] = static_cast<float>(whole_within(x[i] * inverse + 32.5f, 63.25f) - 32);
    const float e = scale * codes[i] - x[i];
    errors[i] = w[i] * e * e;
  }
  return folded_sum<kSigned>(errors);
}

float fit_signed(const float* x, const float* w) {
  float extreme = 0.0f;
  for (int i = 0; i < kSigned; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  float best = 0.0f;
  float codes[kSigned];
  float best_error = signed_codes(x, w, best, codes);
  if (extreme == 0.0f) return best;
  for (int step = -10; step <= 10; ++step) {
    float scale = -extreme / (32.0f + 0.1f * static_cast<float>(step));
    for (int pass = 0; pass < 3; ++pass) {
      const float error = signed_codes(x, w, scale, codes);
      if (error < best_error) {
        best_error = error;
        best = scale;
      }
      float xq_terms[kSigned], qq_terms[kSigned];
      for (int i = 0; i < kSigned; ++i) {
        xq_terms[i] = w[i] * x[i] * codes[i];
        qq_terms[i] = w[i] * codes[i] * codes[i];
      }
      const float sqq = folded_sum<kSigned>(qq_terms);
      scale = sqq > 0.0f ? folded_sum<kSigned>(xq_terms) / sqq : 0.0f;
    }
  }
  return best;
}

struct SignedSuper {
  float d = 0.0f;
  std::int8_t scales[16] = {};
  float codes[kSuper] = {};
  float error = 0.0f;
};

void choose_signed_scales(const float* x, const float* w, const float* fits, SignedSuper* super) {
  const float inverse = super->d != 0.0f ? 1.0f / super->d : 0.0f;
  super->error = 0.0f;
  for (int block = 0; block < 16; ++block) {
    const float* xb = x + kSigned * block;
    const float* wb = w + kSigned * block;
    const int scale = whole_within(fits[block] * inverse + 128.5f, 255.25f) - 128;
    float best_error = INFINITY;
    float codes[kSigned];
    for (int s = std::max(scale - 3, -128); s <= std::min(scale + 3, 127); ++s) {
      const float error = signed_codes(xb, wb, super->d * static_cast<float>(s), codes);
      if (error < best_error) {
        best_error = error;
        super->scales[block] = static_cast<std::int8_t>(s);
        std::copy_n(codes, kSigned, super->codes + kSigned * block);
      }
    }
    super->error += best_error;
  }
}

SignedSuper encode_signed_super(const float* x) {
  float w[kSuper];
  float fits[16];
  float extreme = 0.0f;
  for (int block = 0; block < 16; ++block) {
    const float typical = typical_size(x + kSigned * block, kSigned);
    for (int i = kSigned * block; i < kSigned * (block + 1); ++i) {
      w[i] = typical > 0.0f ? 0.5f * typical * typical + x[i] * x[i] : 1.0f;
    }
    fits[block] = fit_signed(x + kSigned * block, w + kSigned * block);
    if (std::abs(fits[block]) > std::abs(extreme)) extreme = fits[block];
  }
  SignedSuper best;
  best.d = stored_scale(extreme / -128.0f);
  choose_signed_scales(x, w, fits, &best);
  for (int refit = 0; refit < kRefits; ++refit) {
    double sax = 0, saa = 0;
    for (int i = 0; i < kSuper; ++i) {
      const double a = best.scales[i / kSigned] * best.codes[i];
      sax += w[i] * a * x[i];
      saa += w[i] * a * a;
    }
    if (!(saa > 0.0)) break;
    SignedSuper next;
    next.d = stored_scale(static_cast<float>(sax / saa));
    choose_signed_scales(x, w, fits, &next);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

}  // namespace

void quantize_q4_k(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<kSuper, 144>(in, blocks, elements, [](const float* x, Byte* out) {
    const RangeSuper super = encode_range_super(x, 15);
    half::store(super.d, out);
    half::store(super.dmin, out + 2);
    pack_scale_min(super.scales, super.mins, out + 4);
    for (int i = 0; i < kSuper / 2; ++i) {
      const float* pair = super.codes + 64 * (i / 32) + i % 32;
      out[16 + i] = static_cast<Byte>(static_cast<int>(pair[0]) | (static_cast<int>(pair[32]) << 4));
    }
  });
}

void quantize_q5_k(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<kSuper, 176>(in, blocks, elements, [](const float* x, Byte* out) {
    const RangeSuper super = encode_range_super(x, 31);
    half::store(super.d, out);
    half::store(super.dmin, out + 2);
    pack_scale_min(super.scales, super.mins, out + 4);
    std::memset(out + 16, 0, 32);
    for (int i = 0; i < kSuper; ++i) {
      out[16 + i % 32] = static_cast<Byte>(out[16 + i % 32] | ((static_cast<int>(super.codes[i]) >> 4) << (i / 32)));
    }
    for (int i = 0; i < kSuper / 2; ++i) {
      const float* pair = super.codes + 64 * (i / 32) + i % 32;
      out[48 + i] = static_cast<Byte>((static_cast<int>(pair[0]) & 15) | ((static_cast<int>(pair[32]) & 15) << 4));
    }
  });
}

void quantize_q6_k(const float* in, void* blocks, std::int64_t elements) {
  for_each_block_out<kSuper, 210>(in, blocks, elements, [](const float* x, Byte* out) {
    const SignedSuper super = encode_signed_super(x);
    std::memset(out, 0, 192);
    for (int i = 0; i < kSuper; ++i) {
      const int code = static_cast<int>(super.codes[i]) + 32;
      const int part = i / 128, quarter = i % 128 / 32, l = i % 32;
      Byte& low = out[64 * part + 32 * (quarter % 2) + l];
      Byte& high = out[128 + 32 * part + l];
      low = static_cast<Byte>(low | ((code & 15) << (quarter < 2 ? 0 : 4)));
      high = static_cast<Byte>(high | ((code >> 4) << (2 * quarter)));
    }
    std::memcpy(out + 192, super.scales, 16);
    half::store(super.d, out + 208);
  });
}

}  // namespace dgemma
