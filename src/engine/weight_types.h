// Which type each tensor of a GGUF file is stored in: one type for every matrix, or a published mix. Knows names,
// shapes and types, no bytes.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/checkpoint.h"

namespace dgemma {

enum class WeightMix {
  as_stored,  // matrices as they are
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_k,
  q5_k,
  q6_k,
  q4_k_m,  // the mixes of the published DiffusionGemma files
  q5_k_m,
};

// "F32", ..., "Q4_K_M", in any case; nothing for another name. as_stored has no name.
std::optional<WeightMix> weight_mix_from_name(std::string_view name);
// The names, for help and messages.
std::vector<std::string> weight_mix_names();

// general.file_type of a file stored so. as_stored: that of `tensors`, by the type of most of their elements. A pure
// Q4_K or Q5_K file has the number of the ..._K_S mix, which is the nearest.
std::uint32_t file_type(WeightMix mix, std::span<const TensorInfo> tensors);

// The type of each tensor (GGUF names; the bytes are not looked at). Tensors of one dimension and the router are F32 in
// every mix. A matrix whose rows are no multiple of its type's block falls back as in llama.cpp: Q4_K to Q5_0, Q5_K to
// Q5_1, Q6_K to Q8_0; rows that no block of 32 divides stay in 16 bits (BF16 where it comes from BF16, else F16).
// Types that hold no weights (integers, F64) stay as they are.
std::vector<DType> weight_types(WeightMix mix, std::span<const TensorInfo> tensors);

}  // namespace dgemma
