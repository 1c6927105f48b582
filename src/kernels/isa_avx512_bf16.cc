// The avx512_bf16 table. Compiled with its own flags; everything but the table stays in an unnamed namespace, so that
// no inline function compiled for this instruction set can be linked into other code.
#include <immintrin.h>

#include "kernels/table.h"

namespace dgemma {
namespace {
// clang-format off
// The bodies need the vector type first.
#include "kernels/simd/avx512.h"
#include "kernels/simd/dot_avx512_common.h"
#include "kernels/simd/dot_avx512_vnni.h"
#include "kernels/simd/bf16_avx512.h"
#include "kernels/simd/dot2_avx512_bf16.h"
#include "kernels/body/gemm.inc"
#include "kernels/body/elementwise.inc"
#include "kernels/body/codes.inc"
#include "kernels/body/unpack_avx512.inc"
#include "kernels/body/int8.inc"
#include "kernels/body/bf16_multiply.inc"
#include "kernels/body/bf16.inc"
// clang-format on
}  // namespace

extern const KernelTable kernels_avx512_bf16;
const KernelTable kernels_avx512_bf16 = {
    "avx512_bf16", gemm_nt,   gemm_nn_add,      sum_squares,      scale_weight,  geglu,
    maximum,       exp_sum,   exp_sum_weighted, soft_cap,         multiply,      quantize_activations,
    kGemmInt8,     pack_bf16, pack_panel_bf16,  pack_inputs_bf16, multiply_bf16, kGemmBf16,
    true};

}  // namespace dgemma
