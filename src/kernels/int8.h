// Products of stored block formats with activations in 8 bits: sums of a block are exact integers, block scales are
// applied in f32. Nothing of a weight is rounded; an activation is rounded to 1/127 of the largest of its 32.
#pragma once

#include <cstdint>

namespace dgemma {

// 32 activations of one row, x_i = scale * code_i.
struct ActivationBlock {
  float scale;
  std::int32_t sums[3];  // of the codes: all, the first 16, the last 16
};

constexpr std::int64_t kActivationBlock = 32;
constexpr std::int64_t kPanelRows = 32;  // most weight rows of one call

// Codes and blocks of a row of k activations, a multiple of 32.
using QuantizeActivations = void (*)(const float* x, std::int8_t* codes, ActivationBlock* blocks, std::int64_t k);

// c[m, n] = x[m, k] w[n, k]^T with n <= kPanelRows stored rows, which lie one after the other, and rows of x whose
// codes and blocks lie k and k / 32 apart. A row of c has the same bits whatever m and n are.
using Int8Gemm = void (*)(const std::int8_t* codes, const ActivationBlock* blocks, std::int64_t m, const void* weights,
                          std::int64_t n, std::int64_t k, float* c, std::int64_t ldc);

// One entry a ggml type id (kernels/dequantize.h); null for the float types.
constexpr int kGgmlTypes = 41;

}  // namespace dgemma
