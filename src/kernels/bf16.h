// Products with both sides rounded to bfloat16 (8 significant bits) and sums in f32. Activations are rounded to nearest
// even; a stored weight is rounded once, from its value in f32, to nearest, and where that lies half-way down in even
// inputs and up in odd ones. Where the machine multiplies bfloat16 (AVX-512 BF16, AMX), these are its fastest products;
// elsewhere they are the same products on widened numbers.
#pragma once

#include <cstdint>

#include "kernels/int8.h"

namespace dgemma {

// Packed activations: blocks of 16 rows and 32 inputs, a kilobyte each, in which row r's inputs lie at [32 r]. The
// blocks of the same rows lie one after the other. Rows that fill up the last 16 are zero.
constexpr std::int64_t kBf16Rows = 16, kBf16Inputs = 32;

// A packed panel: word [i / 2 * kPanelRows + j] holds inputs i and i + 1 of weight row j, the even one in its low half.

// x[rows, cols] with rows `stride` apart; cols a multiple of 32. packed: [rows rounded up to 16, cols].
using PackBf16 = void (*)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                          std::uint16_t* packed);

// A panel of n <= kPanelRows weight rows of `inputs` values, a multiple of 32; the other rows of the panel are zero.
using PackPanelBf16 = void (*)(const float* weights, std::int64_t stride, std::int64_t n, std::int64_t inputs,
                               std::uint32_t* panel);

// Panels of inputs that lie row by row: panel p takes columns 32 p .. of x[inputs, cols], cols a multiple of 32. Panels
// lie panel_stride words apart. An odd last input is paired with zero.
using PackInputsBf16 = void (*)(const float* x, std::int64_t stride, std::int64_t inputs, std::int64_t cols,
                                std::uint32_t* panels, std::int64_t panel_stride);

// c[m, 32 panels] = or += x w^T, for x packed with its blocks of rows x_stride elements apart, and panels of `inputs`
// inputs (a multiple of 32) that lie panel_stride words apart. An element's sum runs in the order of the inputs and has
// the same bits whatever m and the number of panels.
using MultiplyBf16 = void (*)(const std::uint16_t* x, std::int64_t x_stride, std::int64_t m,
                              const std::uint32_t* panels, std::int64_t panel_stride, std::int64_t count,
                              std::int64_t inputs, bool add, float* c, std::int64_t ldc);

// c[m, n] = x[m, k] w[n, k]^T with x packed, n <= kPanelRows stored rows that lie one after the other, and k a multiple
// of 32. A row of c has the same bits whatever m and n are.
using Bf16Gemm = void (*)(const std::uint16_t* x, std::int64_t m, const void* weights, std::int64_t n, std::int64_t k,
                          float* c, std::int64_t ldc);

}  // namespace dgemma
