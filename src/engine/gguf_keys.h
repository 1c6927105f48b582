// A model's numbers as metadata of a GGUF file: the inverse of model/gguf_config.h.
#pragma once

#include <string_view>
#include <vector>

#include "diffusion/schedule.h"
#include "format/gguf_writer.h"
#include "model/config.h"

namespace dgemma {

// Adds the keys of `architecture` ("diffusion-gemma" or "gemma4": spec gguf.md 2.1). Throws unsupported for layers that
// GGUF, which has one key for all layers of a kind, cannot say.
void add_model_keys(GgufWriter& out, std::string_view architecture, const ModelConfig& config);

// Adds diffusion.*: the canvas and how it is denoised.
void add_denoising_keys(GgufWriter& out, std::int64_t canvas_length, const DenoiseSettings& denoise);

// rope_freqs.weight: what divides the frequency of each pair of a full layer's head, 1 for those that rotate. Throws
// what add_model_keys throws.
std::vector<float> rope_divisors(const ModelConfig& config);

}  // namespace dgemma
