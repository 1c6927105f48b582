// The kernels of one instruction set as a table of functions: one indirect call a tile or row, none an element. A
// kernel allocates nothing, throws nothing, starts no thread, and gives the same bits for an output element whatever
// tile it lies in.
#pragma once

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/int8.h"

namespace dgemma {

struct KernelTable {
  const char* name;

  // c[m, n] = a[m, k] b[n, k]^T; strides in elements. Each element is one dot product in a fixed order.
  void (*gemm_nt)(const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                  std::int64_t m, std::int64_t n, std::int64_t k);
  // c[m, n] += a[m, k] b[k, n]; k ascending for each element.
  void (*gemm_nn_add)(const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                      std::int64_t m, std::int64_t n, std::int64_t k);
  // sum of x_i^2.
  float (*sum_squares)(const float* x, std::int64_t n);
  // y_i = x_i * scale * weight_i; weight may be null (all ones).
  void (*scale_weight)(float* y, const float* x, float scale, const float* weight, std::int64_t n);
  // y_i = gelu_tanh(gate_i) * up_i.
  void (*geglu)(float* y, const float* gate, const float* up, std::int64_t n);
  float (*maximum)(const float* x, std::int64_t n);
  // x_i = exp(x_i - shift); returns the sum.
  float (*exp_sum)(float* x, float shift, std::int64_t n);
  // x_i = exp(x_i - shift); returns the sum, and in `weighted` the sum of (x_i - shift) exp(x_i - shift) with the x_i
  // that came in: what an entropy needs.
  float (*exp_sum_weighted)(float* x, float shift, float* weighted, std::int64_t n);
  // x_i = cap * tanh(x_i / cap) / temperature: the soft cap of the head (cap <= 0: none), then the temperature.
  void (*soft_cap)(float* x, float cap, float temperature, std::int64_t n);
  void (*multiply)(float* x, float factor, std::int64_t n);

  QuantizeActivations quantize_activations;
  const Int8Gemm* gemm_int8;  // [kGgmlTypes]

  PackBf16 pack_bf16;
  PackPanelBf16 pack_panel_bf16;
  PackInputsBf16 pack_inputs_bf16;
  MultiplyBf16 multiply_bf16;
  const Bf16Gemm* gemm_bf16;  // [kGgmlTypes]
  // The machine multiplies bfloat16: multiply_bf16 is faster than gemm_nt.
  bool fast_bf16;
};

// The table for this CPU, or the one named by the environment variable DGEMMA_ISA (null when that one cannot run here).
const KernelTable* kernel_table();

// All tables that this CPU can run, scalar first; the count goes to `count`.
const KernelTable* const* runnable_kernel_tables(int* count);

}  // namespace dgemma
