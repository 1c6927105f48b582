// The neon_i8mm table. Compiled with its own flags; everything but the table stays in an unnamed namespace, so that no
// inline function compiled for this instruction set can be linked into other code.
#include <arm_neon.h>

#include "kernels/table.h"

namespace dgemma {
namespace {
// clang-format off
// The bodies need the vector type first.
#include "kernels/simd/neon.h"
#include "kernels/simd/dot_neon_common.h"
#include "kernels/simd/dot_neon_i8mm.h"
#include "kernels/simd/bf16_neon.h"
#include "kernels/simd/dot2_widened.h"
#include "kernels/body/gemm.inc"
#include "kernels/body/elementwise.inc"
#include "kernels/body/codes.inc"
#include "kernels/body/int8.inc"
#include "kernels/body/bf16_multiply.inc"
#include "kernels/body/bf16.inc"
// clang-format on
}  // namespace

extern const KernelTable kernels_neon_i8mm;
const KernelTable kernels_neon_i8mm = {
    "neon_i8mm", gemm_nt,   gemm_nn_add,      sum_squares,      scale_weight,  geglu,
    maximum,     exp_sum,   exp_sum_weighted, soft_cap,         multiply,      quantize_activations,
    kGemmInt8,   pack_bf16, pack_panel_bf16,  pack_inputs_bf16, multiply_bf16, kGemmBf16,
    false};

}  // namespace dgemma
