// Reads a Hugging Face config.json into a ModelConfig.
#pragma once

#include <string_view>

#include "model/config.h"

namespace dgemma {

// `json` is the text of config.json: model_type diffusion_gemma (both serialisations of the full layers' sizes:
// global_head_dim or per_layer_config), gemma4 / gemma4_text with a MoE block, gemma3_text. embedding_scale is left at
// sqrt(hidden), unrounded. Throws bad_input naming the field, or unsupported for another model_type.
ModelConfig config_from_hugging_face(std::string_view json);

// Numbers of the GGUF and Hugging Face loaders that follow from others: frequencies f_i = theta^(-2i / head_dim) /
// factor for the rotating pairs, 0 for the rest (spec 2.5).
std::vector<float> rope_frequencies(const LayerConfig& layer);

}  // namespace dgemma
