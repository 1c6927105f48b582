// The avx512 table. Compiled with its own flags; everything but the table stays in an unnamed namespace, so that no
// inline function compiled for this instruction set can be linked into other code.
#include <immintrin.h>

#include "kernels/table.h"

namespace dgemma {
namespace {
// clang-format off
// The bodies need the vector type first.
#include "kernels/simd/avx512.h"
#include "kernels/simd/dot_avx512_common.h"
#include "kernels/simd/dot_avx512.h"
#include "kernels/body/gemm.inc"
#include "kernels/body/elementwise.inc"
#include "kernels/body/codes.inc"
#include "kernels/body/unpack_avx512.inc"
#include "kernels/body/int8.inc"
// clang-format on
}  // namespace

extern const KernelTable kernels_avx512;
const KernelTable kernels_avx512 = {
    "avx512", gemm_nt,          gemm_nn_add, sum_squares, scale_weight,         geglu,    maximum,
    exp_sum,  exp_sum_weighted, soft_cap,    multiply,    quantize_activations, kGemmInt8};

}  // namespace dgemma
