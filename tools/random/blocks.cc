#include "random/blocks.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "kernels/half.h"
#include "kernels/quant_blocks.h"

namespace dgemma {
namespace {

using Byte = std::uint8_t;

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): eight random bytes a
// nanosecond, which the counter-based numbers of base/random.h, here its seeds, cannot give.
class FastRandom {
 public:
  explicit FastRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  void fill(Byte* out, std::int64_t bytes) {
    std::int64_t done = 0;
    for (; done + 8 <= bytes; done += 8) {
      const std::uint64_t bits = next();
      std::memcpy(out + done, &bits, 8);
    }
    if (done < bytes) {
      const std::uint64_t bits = next();
      std::memcpy(out + done, &bits, static_cast<std::size_t>(bytes - done));
    }
  }

 private:
  std::uint64_t state_;
};

// 0.75 to 1.25, from two random bytes.
float jitter(const Byte* bytes) { return 0.75f + 0.5f / 65536.0f * static_cast<float>(bytes[0] | (bytes[1] << 8)); }

// Root mean squares of the codes, all equally frequent, less their offset: of n - 8 for n of 0..15 and so on.
const float kNibbleAbout8 = std::sqrt(21.5f), kNibbleAboutMean = std::sqrt(21.25f), kFiveBitsAbout16 = std::sqrt(85.5f),
            kSixBitsAbout32 = std::sqrt(341.5f), kSignedByte = std::sqrt((255.0f * 255.0f - 1) / 12.0f);

// Each of these takes blocks of random bytes and makes their scales, leaving the codes.

// Formats of one signed scale in front of 32 codes; the offset of odd range leaves a mean of half a code, which a scale
// of either sign, as encoders choose it too, takes away.
void set_scale(Byte* block, float scale) {
  const bool negative = (block[0] & 1) != 0;
  half::store((negative ? -scale : scale) * jitter(block), block);
}

void set_q8_0(Byte* block, float deviation) {
  half::store(deviation / kSignedByte * jitter(block), block);
  for (int i = 2; i < 34; ++i) block[i] = block[i] == 0x80 ? Byte{0} : block[i];  // encoders never give -128
}

void set_q4_k(Byte* block, float deviation) {
  constexpr float kScales = 2341.5f;  // mean square of 32..63
  const float d = half::store(deviation / (std::sqrt(kScales) * kNibbleAboutMean) * jitter(block), block);
  half::store(7.5f * d, block + 2);  // minima equal to the scales put the mean at zero
  Byte scales[8];
  for (int j = 0; j < 8; ++j) scales[j] = static_cast<Byte>(32 + (block[4 + j] & 31));
  quant::pack_scale_min(scales, scales, block + 4);
}

void set_q6_k(Byte* block, float deviation) {
  constexpr float kScales = 95.5f * 95.5f + 341.25f;  // mean square of 64..127
  Byte* scales = block + 192;
  for (int i = 0; i < 16; ++i) {
    const int size = 64 + (scales[i] & 63);
    scales[i] = static_cast<Byte>((scales[i] & 64) != 0 ? -size : size);
  }
  half::store(deviation / (std::sqrt(kScales) * kSixBitsAbout32) * jitter(block + 208), block + 208);
}

void set_block(DType dtype, Byte* block, float deviation) {
  switch (dtype) {
    case DType::q8_0:
      return set_q8_0(block, deviation);
    case DType::q4_0:
      return set_scale(block, deviation / kNibbleAbout8);
    case DType::q5_0:
      return set_scale(block, deviation / kFiveBitsAbout16);
    case DType::q4_k:
      return set_q4_k(block, deviation);
    case DType::q6_k:
      return set_q6_k(block, deviation);
    default:
      fail(ErrorKind::unsupported, "random weights of type {} are not built", dtype_name(dtype));
  }
}

void random_floats(FastRandom& random, DType dtype, std::int64_t cols, float deviation, Byte* out) {
  const float unit = deviation * std::sqrt(12.0f) / 65536.0f;  // 16 random bits are uniform over 65536 units
  for (std::int64_t i = 0; i < cols; i += 4) {
    std::int16_t codes[4];
    const std::uint64_t bits = random.next();
    std::memcpy(codes, &bits, sizeof codes);
    for (std::int64_t k = 0; k < 4 && i + k < cols; ++k) {
      const float value = unit * (static_cast<float>(codes[k]) + 0.5f);
      const std::uint16_t rounded = half::to_bf16(value);
      if (dtype == DType::f32) std::memcpy(out + (i + k) * 4, &value, 4);
      if (dtype == DType::bf16) std::memcpy(out + (i + k) * 2, &rounded, 2);
    }
  }
}

}  // namespace

void random_rows(DType dtype, RandomStream random, std::int64_t first, std::int64_t rows, std::int64_t cols,
                 float deviation, void* out) {
  const BlockShape shape = block_shape(dtype);
  const std::int64_t row_size = row_bytes(dtype, cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    Byte* bytes = static_cast<Byte*>(out) + row * row_size;
    FastRandom codes(random_bits(random.seed, random.stream, static_cast<std::uint64_t>(first + row)));
    if (dtype == DType::f32 || dtype == DType::bf16) {
      random_floats(codes, dtype, cols, deviation, bytes);
      continue;
    }
    codes.fill(bytes, row_size);
    for (std::int64_t at = 0; at < row_size; at += shape.bytes) set_block(dtype, bytes + at, deviation);
  }
}

}  // namespace dgemma
