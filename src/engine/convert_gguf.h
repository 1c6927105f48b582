// A Hugging Face directory as one GGUF file of architecture diffusion-gemma: the text model, without the vision tower
// (spec gguf.md 2).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/write_weights.h"

namespace dgemma {

struct ConvertSettings {
  std::string name;                // general.name; empty: the directory's
  bool without_tokenizer = false;  // the weights alone
};

struct Converted {
  WrittenTypes written;
  std::vector<std::string> notes;  // what the file does not hold, for the user
};

// `directory`: config.json, safetensors, tokenizer.json and, where there are, generation_config.json and a chat
// template (chat_template.jinja, or in tokenizer_config.json). Norm weights are stored as they are. Throws what the
// readers, check_output and write_weights throw; bad_input for a tensor that would be lost, unsupported for a model
// that is no DiffusionGemma or whose numbers these keys cannot hold.
Converted convert_to_gguf(const std::filesystem::path& directory, const ConvertSettings& settings,
                          const GgufOutput& output);

// general.size_label of tensors under GGUF names, by the rule of the gguf package: "128x2.6B" is 128 experts, and the
// weights of one of each with all others.
std::string size_label(std::span<const TensorInfo> tensors);

}  // namespace dgemma
