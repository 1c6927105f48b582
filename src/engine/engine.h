// A loaded model, constant after open: configuration, weights, generation defaults.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "diffusion/schedule.h"
#include "format/checkpoint.h"
#include "model/config.h"
#include "model/weights.h"
#include "text/tokenizer.h"

namespace dgemma {

// What generation_config.json says, over the reference's built-in defaults (spec architecture.md 1.4).
struct GenerationDefaults {
  DenoiseSettings denoise;
  std::int64_t max_new_tokens = 256;
  std::vector<std::int32_t> stop_ids{1, 106, 50};
};

// `json` is the text of generation_config.json. Throws bad_input naming the field.
GenerationDefaults parse_generation_config(std::string_view json);

class Engine {
 public:
  // `path`: a directory with config.json, safetensors and, where the checkpoint has them, generation_config.json and
  // tokenizer.json; or a .gguf file. Throws bad_input or unsupported.
  static Engine open(const std::filesystem::path& path);

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  const GenerationDefaults& defaults() const { return defaults_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  // Throws bad_input when the checkpoint came without a tokenizer.
  const Tokenizer& tokenizer() const;

 private:
  Engine() = default;
  void open_directory(const std::filesystem::path& path);
  void open_gguf(const std::filesystem::path& path);

  std::unique_ptr<Checkpoint> checkpoint_;  // keeps the mapped files that weights_ looks into
  ModelConfig config_;
  Weights weights_;
  GenerationDefaults defaults_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace dgemma
