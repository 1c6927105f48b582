#include "engine/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "model/bind.h"
#include "model/gguf_config.h"
#include "model/hf_config.h"
#include "text/tokenizer_from_gguf.h"

namespace dgemma {
namespace {

using Json = nlohmann::json;

template <typename T>
void read(const Json& object, const char* name, T& value) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return;
  const bool fits = std::is_integral_v<T> ? found->is_number_integer() : found->is_number();
  if (!fits) bad_input("generation_config.json: {} must be a number, found {}", name, found->dump());
  value = found->get<T>();
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

GenerationDefaults parse_generation_config(std::string_view json) {
  if (json.size() > 1 << 20) bad_input("generation_config.json: {} bytes, expected at most 1 MiB", json.size());
  Json document;
  try {
    document = Json::parse(json, [](int depth, Json::parse_event_t, Json&) {
      if (depth > 16) bad_input("generation_config.json: nested deeper than 16 levels");
      return true;
    });
  } catch (const Json::exception& error) {
    bad_input("generation_config.json: not valid JSON: {}", error.what());
  }
  if (!document.is_object()) bad_input("generation_config.json: expected an object");
  GenerationDefaults defaults;
  DenoiseSettings& denoise = defaults.denoise;
  read(document, "max_new_tokens", defaults.max_new_tokens);
  read(document, "max_denoising_steps", denoise.max_denoising_steps);
  read(document, "t_min", denoise.t_min);
  read(document, "t_max", denoise.t_max);
  read(document, "stability_threshold", denoise.stability_threshold);
  read(document, "confidence_threshold", denoise.confidence_threshold);
  if (document.contains("sampler_config") && document["sampler_config"].is_object()) {
    read(document["sampler_config"], "entropy_bound", denoise.entropy_bound);
  }
  if (document.contains("eos_token_id") && !document["eos_token_id"].is_null()) {
    const Json& ids = document["eos_token_id"];
    defaults.stop_ids.clear();
    for (const Json& id : ids.is_array() ? ids : Json::array({ids})) {
      if (!id.is_number_integer())
        bad_input("generation_config.json: eos_token_id must hold integers, found {}", id.dump());
      defaults.stop_ids.push_back(id.get<std::int32_t>());
    }
  }
  denoise.validate();
  return defaults;
}

Engine Engine::open(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) bad_input("{}: there is no such model", path.string());
  Engine engine;
  if (std::filesystem::is_directory(path)) {
    engine.open_directory(path);
  } else if (path.extension() == ".gguf") {
    engine.open_gguf(path);
  } else {
    fail(ErrorKind::unsupported, "{}: expected a directory with config.json and safetensors, or a .gguf file",
         path.string());
  }
  if (engine.tokenizer_ && engine.tokenizer_->size() > engine.config_.vocabulary) {
    bad_input("{}: the tokenizer has {} pieces, the model's vocabulary {}; the files do not belong together",
              path.string(), engine.tokenizer_->size(), engine.config_.vocabulary);
  }
  return engine;
}

void Engine::open_directory(const std::filesystem::path& path) {
  const MappedFile config(path / "config.json");
  config_ = config_from_hugging_face(text_of(config));
  if (std::filesystem::exists(path / "generation_config.json")) {
    defaults_ = parse_generation_config(text_of(MappedFile(path / "generation_config.json")));
  }
  checkpoint_ = std::make_unique<SafetensorsFile>(SafetensorsFile::open_directory(path));
  weights_ = bind(*checkpoint_, Naming::hugging_face, config_);
  if (std::filesystem::exists(path / "tokenizer.json")) {
    tokenizer_ = Tokenizer::from_json(MappedFile(path / "tokenizer.json").bytes());
  }
}

void Engine::open_gguf(const std::filesystem::path& path) {
  auto file = std::make_unique<GgufFile>(GgufFile::open(path));
  config_ = config_from_gguf(*file);
  weights_ = bind(*file, Naming::gguf, config_);
  DenoiseSettings& denoise = defaults_.denoise;
  denoise.max_denoising_steps = static_cast<int>(std::clamp<std::int64_t>(
      file->integer("diffusion.eb_max_steps").value_or(denoise.max_denoising_steps), 0, 1 << 20));
  denoise.t_min = static_cast<float>(file->number("diffusion.eb_t_min").value_or(denoise.t_min));
  denoise.t_max = static_cast<float>(file->number("diffusion.eb_t_max").value_or(denoise.t_max));
  denoise.entropy_bound =
      static_cast<float>(file->number("diffusion.eb_entropy_bound").value_or(denoise.entropy_bound));
  denoise.stability_threshold = static_cast<int>(std::clamp<std::int64_t>(
      file->integer("diffusion.eb_stability_threshold").value_or(denoise.stability_threshold), -1, 1 << 20));
  denoise.confidence_threshold =
      static_cast<float>(file->number("diffusion.eb_confidence_threshold").value_or(denoise.confidence_threshold));
  denoise.validate();
  if (file->value("tokenizer.ggml.model") != nullptr) {
    tokenizer_ = tokenizer_from_gguf(*file);
    // GGUF names one end token; a chat model also ends a turn, and a tool call.
    defaults_.stop_ids.clear();
    for (const char* piece : {"<turn|>", "<end_of_turn>", "<|tool_response>"}) {
      if (const std::int32_t id = tokenizer_->id_of(piece); id >= 0) defaults_.stop_ids.push_back(id);
    }
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      if (const auto id = file->integer(key)) defaults_.stop_ids.push_back(static_cast<std::int32_t>(*id));
    }
    if (tokenizer_->eos() >= 0) defaults_.stop_ids.push_back(tokenizer_->eos());
  }
  checkpoint_ = std::move(file);
}

const Tokenizer& Engine::tokenizer() const {
  if (!tokenizer_) bad_input("the checkpoint has no tokenizer; a directory needs the tokenizer.json of its model");
  return *tokenizer_;
}

}  // namespace dgemma
