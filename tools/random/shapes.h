// The numbers of the released model with any number of layers, and of a small one with the same parts.
#pragma once

#include "model/config.h"

namespace dgemma {

// DiffusionGemma 26B-A4B (config.json). Layers are full where (i + 1) mod 6 = 0, and the last one always. Throws
// bad_input for fewer than 1 or more than 512 layers.
ModelConfig diffusion_gemma_config(std::int64_t layers);

// The same parts in about a megabyte, for tests: rows that Q4_K divides and rows that only blocks of 32 do.
ModelConfig small_config(std::int64_t layers);

}  // namespace dgemma
