#include "engine/engine.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "format/safetensors.h"
#include "model/bind.h"
#include "model/hf_config.h"

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
  if (!std::filesystem::is_directory(path)) {
    fail(ErrorKind::unsupported, "{}: expected a directory with config.json and safetensors", path.string());
  }
  Engine engine;
  const MappedFile config(path / "config.json");
  engine.config_ = config_from_hugging_face(text_of(config));
  if (std::filesystem::exists(path / "generation_config.json")) {
    engine.defaults_ = parse_generation_config(text_of(MappedFile(path / "generation_config.json")));
  }
  engine.checkpoint_ = std::make_unique<SafetensorsFile>(SafetensorsFile::open_directory(path));
  engine.weights_ = bind(*engine.checkpoint_, Naming::hugging_face, engine.config_);
  if (std::filesystem::exists(path / "tokenizer.json")) {
    engine.tokenizer_ = Tokenizer::from_json(MappedFile(path / "tokenizer.json").bytes());
    if (engine.tokenizer_->size() > engine.config_.vocabulary) {
      bad_input("{}: tokenizer.json has {} pieces, the model's vocabulary {}; the files do not belong together",
                path.string(), engine.tokenizer_->size(), engine.config_.vocabulary);
    }
  }
  return engine;
}

const Tokenizer& Engine::tokenizer() const {
  if (!tokenizer_) bad_input("the checkpoint has no tokenizer.json; copy it from where the model came from");
  return *tokenizer_;
}

}  // namespace dgemma
