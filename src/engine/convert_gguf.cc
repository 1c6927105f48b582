#include "engine/convert_gguf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "engine/engine.h"
#include "format/safetensors.h"
#include "model/bind.h"
#include "model/hf_config.h"
#include "text/tokenizer_to_gguf.h"

namespace dgemma {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kArchitecture = "diffusion-gemma";
constexpr float kNeverTurns = 1e30f;  // divides the frequency of a pair that passes unrotated
constexpr std::size_t kMaxTemplateBytes = 1 << 20;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The layers of one kind must be alike, since GGUF has one key for each kind's numbers.
struct Kinds {
  LayerConfig full, sliding;
};

Kinds kinds_of(const ModelConfig& config) {
  const LayerConfig* full = nullptr;
  const LayerConfig* sliding = nullptr;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const LayerConfig& layer = config.layers[i];
    const LayerConfig*& first = layer.sliding ? sliding : full;
    if (first == nullptr) first = &layer;
    const bool alike = layer.head_dim == first->head_dim && layer.rope_theta == first->rope_theta &&
                       layer.rotating_pairs == first->rotating_pairs && layer.heads == config.layers[0].heads;
    const bool fits = layer.rope_factor == 1 && layer.shares_key_value == !layer.sliding &&
                      (!layer.sliding || layer.rotating_pairs == layer.head_dim / 2);
    if (!alike || !fits) {
      fail(ErrorKind::unsupported,
           "layer {}: its head size, heads or rotation cannot be written to GGUF, where all layers of a kind are alike",
           i);
    }
  }
  if (full == nullptr) full = sliding;
  if (sliding == nullptr) sliding = full;
  return {*full, *sliding};
}

void add_model_keys(GgufWriter& out, const ModelConfig& config, const Kinds& kinds) {
  const auto key = [](const char* name) { return std::string(kArchitecture) + "." + name; };
  const auto u32 = [&](const char* name, std::int64_t value) {
    out.add_u32(key(name), static_cast<std::uint32_t>(value));
  };
  std::vector<std::int32_t> kv_heads;
  std::vector<bool> sliding;
  for (const LayerConfig& layer : config.layers) {
    kv_heads.push_back(static_cast<std::int32_t>(layer.kv_heads));
    sliding.push_back(layer.sliding);
  }
  u32("block_count", static_cast<std::int64_t>(config.layers.size()));
  u32("context_length", config.max_positions);
  u32("embedding_length", config.hidden);
  u32("feed_forward_length", config.intermediate);
  u32("attention.head_count", kinds.full.heads);
  out.add_i32s(key("attention.head_count_kv"), kv_heads);
  out.add_f32(key("rope.freq_base"), kinds.full.rope_theta);
  out.add_f32(key("rope.freq_base_swa"), kinds.sliding.rope_theta);
  out.add_f32(key("attention.layer_norm_rms_epsilon"), config.rms_norm_eps);
  u32("expert_count", config.experts);
  u32("expert_used_count", config.experts_used);
  u32("expert_feed_forward_length", config.moe_intermediate);
  u32("attention.key_length", kinds.full.head_dim);
  u32("attention.value_length", kinds.full.head_dim);
  u32("attention.key_length_swa", kinds.sliding.head_dim);
  u32("attention.value_length_swa", kinds.sliding.head_dim);
  u32("rope.dimension_count", kinds.full.head_dim);
  u32("rope.dimension_count_swa", kinds.sliding.head_dim);
  out.add_f32(key("final_logit_softcapping"), config.final_logit_softcapping);
  u32("attention.sliding_window", config.sliding_window);
  out.add_booleans(key("attention.sliding_window_pattern"), sliding);
  u32("attention.shared_kv_layers", 0);
  u32("embedding_length_per_layer_input", 0);
  out.add_boolean(key("attention.causal"), false);
}

void add_denoising_keys(GgufWriter& out, std::int64_t canvas_length, const DenoiseSettings& denoise) {
  out.add_u32("diffusion.canvas_length", static_cast<std::uint32_t>(canvas_length));
  out.add_u32("diffusion.eb_max_steps", static_cast<std::uint32_t>(denoise.max_denoising_steps));
  out.add_f32("diffusion.eb_t_min", denoise.t_min);
  out.add_f32("diffusion.eb_t_max", denoise.t_max);
  out.add_f32("diffusion.eb_entropy_bound", denoise.entropy_bound);
  out.add_u32("diffusion.eb_stability_threshold", static_cast<std::uint32_t>(denoise.stability_threshold));
  out.add_f32("diffusion.eb_confidence_threshold", denoise.confidence_threshold);
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
  const Kinds kinds = kinds_of(config);
  std::vector<TensorInfo> tensors = renamed(checkpoint, names, out.notes);
  std::vector<float> divisors(static_cast<std::size_t>(kinds.full.head_dim / 2), kNeverTurns);
  std::fill_n(divisors.begin(), kinds.full.rotating_pairs, 1.0f);
  tensors.push_back(
      {"rope_freqs.weight", DType::f32, {kinds.full.head_dim / 2}, std::as_bytes(std::span(std::as_const(divisors)))});

  GgufWriter writer;
  writer.add_string("general.architecture", kArchitecture);
  writer.add_string("general.type", "model");
  writer.add_string("general.name", settings.name.empty() ? name_of(directory) : settings.name);
  writer.add_string("general.size_label", size_label(tensors));
  add_model_keys(writer, config, kinds);
  add_denoising_keys(writer, config.canvas_length, defaults.denoise);
  if (!settings.without_tokenizer) {
    add_tokenizer(writer, directory, config.vocabulary, defaults.stop_ids, out.notes);
  }
  out.written = write_weights(writer, tensors, output);
  return out;
}

}  // namespace dgemma
