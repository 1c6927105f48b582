#include "engine/convert_gguf.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "engine/engine.h"
#include "engine/gguf_keys.h"
#include "format/safetensors.h"
#include "model/bind.h"
#include "model/hf_config.h"
#include "text/tokenizer_to_gguf.h"

namespace dgemma {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kArchitecture = "diffusion-gemma";
constexpr std::size_t kMaxTemplateBytes = 1 << 20;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The text model's tensors under GGUF names; the bytes stay in the checkpoint.
std::vector<TensorInfo> renamed(const Checkpoint& checkpoint, const std::vector<TensorName>& names,
                                std::vector<std::string>& notes) {
  std::vector<TensorInfo> out;
  std::unordered_set<std::string_view> used;
  for (const TensorName& name : names) {
    used.insert(name.hugging_face);
    out.push_back(*checkpoint.find(name.hugging_face));
    out.back().name = name.gguf;
  }
  std::size_t dropped = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (used.contains(tensor.name)) continue;
    // The encoder's part is the vision tower; its text layers are the decoder's.
    if (!tensor.name.starts_with("model.encoder.")) {
      bad_input("tensor {} is no part of a DiffusionGemma that dgemma knows, and would be lost", tensor.name);
    }
    ++dropped;
  }
  if (dropped > 0) notes.push_back(fmt::format("{} tensors of the encoder's vision tower are left out", dropped));
  return out;
}

// The text of the template, or an empty one.
std::string chat_template_of(const fs::path& directory) {
  const fs::path own = directory / "chat_template.jinja", config = directory / "tokenizer_config.json";
  std::string out;
  if (fs::exists(own)) {
    out = text_of(MappedFile(own));
  } else if (fs::exists(config)) {
    const MappedFile file(config);
    try {
      const Json document = Json::parse(text_of(file));
      const auto found = document.find("chat_template");
      if (found != document.end() && found->is_string()) out = found->get<std::string>();
    } catch (const Json::exception& error) {
      bad_input("{}: not valid JSON: {}", config.string(), error.what());
    }
  }
  if (out.size() > kMaxTemplateBytes) {
    bad_input("{}: a chat template of {} bytes, expected at most {}", directory.string(), out.size(),
              kMaxTemplateBytes);
  }
  return out;
}

void add_tokenizer(GgufWriter& out, const fs::path& directory, std::int64_t vocabulary,
                   const std::vector<std::int32_t>& stop_ids, std::vector<std::string>& notes) {
  const fs::path path = directory / "tokenizer.json";
  if (!fs::exists(path)) {
    bad_input("{}: there is no tokenizer.json; copy it from where the model came from, or pass --no-tokenizer",
              directory.string());
  }
  const MappedFile file(path);
  for (std::string& note : tokenizer_to_gguf(file.bytes(), vocabulary, stop_ids, out)) {
    notes.push_back(std::move(note));
  }
  const std::string chat_template = chat_template_of(directory);
  if (!chat_template.empty()) out.add_string("tokenizer.chat_template", chat_template);
}

// With at least two digits that count: 738M, 2.6B, 0.26K.
std::string rounded(std::int64_t count) {
  struct Unit {
    double size;
    char suffix;
  };
  const auto exact = static_cast<double>(count);
  Unit unit{1e3, 'K'};
  for (const Unit larger : {Unit{1e6, 'M'}, Unit{1e9, 'B'}, Unit{1e12, 'T'}}) {
    if (exact > larger.size) unit = larger;
  }
  const double scaled = exact / unit.size;
  const double whole = std::nearbyint(scaled);
  const int decimals = whole >= 10 ? 0 : whole >= 1 ? 1 : 2;
  return fmt::format("{:.{}f}{}", scaled, decimals, unit.suffix);
}

std::string name_of(const fs::path& directory) {
  const fs::path whole = fs::weakly_canonical(directory);
  return whole.filename().string();
}

}  // namespace

std::string size_label(std::span<const TensorInfo> tensors) {
  std::int64_t total = 0, active = 0, expert_sum = 0, expert_tensors = 0;
  for (const TensorInfo& tensor : tensors) {
    std::int64_t size = 1;
    for (const std::int64_t extent : tensor.shape) size *= extent;
    const std::size_t rank = tensor.shape.size();
    const bool experts = tensor.name.find("_exps.") != std::string::npos && rank >= 3;
    total += size;
    active += experts ? size / tensor.shape[rank - 3] : size;
    if (experts) {
      expert_sum += tensor.shape[rank - 3];
      ++expert_tensors;
    }
  }
  if (expert_tensors == 0) return rounded(total);
  return fmt::format("{}x{}", expert_sum / expert_tensors, rounded(active));
}

Converted convert_to_gguf(const fs::path& directory, const ConvertSettings& settings, const GgufOutput& output) {
  if (!fs::exists(directory)) bad_input("{}: there is no such directory", directory.string());
  if (!fs::is_directory(directory)) {
    bad_input("{}: expected a directory with config.json and safetensors; for a .gguf file use dgemma quantize",
              directory.string());
  }
  check_output(output, {});
  const MappedFile config_file(directory / "config.json");
  ModelConfig config = config_from_hugging_face(text_of(config_file));
  if (config.canvas_length == 0 || config.experts == 0) {
    fail(ErrorKind::unsupported, "{}: only models of type diffusion_gemma are converted", directory.string());
  }
  GenerationDefaults defaults;
  if (fs::exists(directory / "generation_config.json")) {
    const MappedFile file(directory / "generation_config.json");
    defaults = parse_generation_config(text_of(file));
  }
  const SafetensorsFile checkpoint = SafetensorsFile::open_directory(directory);
  std::vector<TensorName> names;
  (void)dgemma::bind(checkpoint, Naming::hugging_face, config, &names);  // for the names, and for its checks

  Converted out;
  const std::vector<float> divisors = rope_divisors(config);
  std::vector<TensorInfo> tensors = renamed(checkpoint, names, out.notes);
  tensors.push_back({"rope_freqs.weight",
                     DType::f32,
                     {static_cast<std::int64_t>(divisors.size())},
                     std::as_bytes(std::span(divisors))});

  GgufWriter writer;
  writer.add_string("general.architecture", kArchitecture);
  writer.add_string("general.type", "model");
  writer.add_string("general.name", settings.name.empty() ? name_of(directory) : settings.name);
  writer.add_string("general.size_label", size_label(tensors));
  add_model_keys(writer, kArchitecture, config);
  add_denoising_keys(writer, config.canvas_length, defaults.denoise);
  if (!settings.without_tokenizer) {
    add_tokenizer(writer, directory, config.vocabulary, defaults.stop_ids, out.notes);
  }
  out.written = write_weights(writer, tensors, output);
  return out;
}

}  // namespace dgemma
