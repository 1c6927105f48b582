#include "model/hf_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace dgemma {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxConfigBytes = 16 << 20;
constexpr int kMaxDepth = 64;

Json parse(std::string_view text) {
  if (text.size() > kMaxConfigBytes)
    bad_input("config.json: {} bytes, expected at most {}", text.size(), kMaxConfigBytes);
  try {
    return Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) bad_input("config.json: nested deeper than {} levels", kMaxDepth);
      return true;
    });
  } catch (const Json::exception& error) {
    bad_input("config.json: not valid JSON: {}", error.what());
  }
}

// Reads typed fields and says which one is missing or of the wrong type.
class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) bad_input("config.json: {} must be an object", place_);
  }

  bool has(const char* name) const { return object_.contains(name) && !object_.at(name).is_null(); }
  std::int64_t integer(const char* name) const {
    const Json& value = required(name);
    if (!value.is_number_integer())
      bad_input("config.json: {}.{} must be an integer, found {}", place_, name, value.dump());
    return value.get<std::int64_t>();
  }
  std::int64_t integer_or(const char* name, std::int64_t fallback) const {
    return has(name) ? integer(name) : fallback;
  }
  double number(const char* name) const {
    const Json& value = required(name);
    if (!value.is_number()) bad_input("config.json: {}.{} must be a number, found {}", place_, name, value.dump());
    return value.get<double>();
  }
  double number_or(const char* name, double fallback) const { return has(name) ? number(name) : fallback; }
  std::string text_or(const char* name, const char* fallback) const {
    if (!has(name)) return fallback;
    if (!object_.at(name).is_string()) bad_input("config.json: {}.{} must be a string", place_, name);
    return object_.at(name).get<std::string>();
  }
  Fields object(const char* name) const { return {required(name), place_ + "." + name}; }
  const Json& required(const char* name) const {
    if (!has(name)) bad_input("config.json: {}.{} is missing", place_, name);
    return object_.at(name);
  }

 private:
  const Json& object_;
  std::string place_;
};

std::vector<bool> sliding_layers(const Fields& text, std::int64_t layers, bool last_is_full) {
  std::vector<bool> sliding;
  if (text.has("layer_types")) {
    for (const Json& type : text.required("layer_types")) {
      if (type != "sliding_attention" && type != "full_attention") {
        bad_input("config.json: layer_types holds {}, expected sliding_attention or full_attention", type.dump());
      }
      sliding.push_back(type == "sliding_attention");
    }
    if (static_cast<std::int64_t>(sliding.size()) != layers) {
      bad_input("config.json: layer_types has {} entries, num_hidden_layers is {}", sliding.size(), layers);
    }
  } else {
    const std::int64_t period = text.integer_or("sliding_window_pattern", 6);
    if (period < 1) bad_input("config.json: sliding_window_pattern must be at least 1");
    for (std::int64_t i = 0; i < layers; ++i) sliding.push_back((i + 1) % period != 0);
  }
  if (last_is_full) sliding.back() = false;
  return sliding;
}

void read_rope(LayerConfig& layer, const Fields& text) {
  const char* type = layer.sliding ? "sliding_attention" : "full_attention";
  double theta = layer.sliding ? text.number_or("rope_local_base_freq", 10000) : text.number_or("rope_theta", 1000000);
  double partial = 1;
  if (text.has("rope_parameters") && text.object("rope_parameters").has(type)) {
    const Fields rope = text.object("rope_parameters").object(type);
    const std::string kind = rope.text_or("rope_type", "default");
    if (kind != "default" && kind != "proportional" && kind != "linear") {
      fail(ErrorKind::unsupported, "config.json: rope_type {} of {} layers is not built", kind, type);
    }
    theta = rope.number_or("rope_theta", theta);
    partial = rope.number_or("partial_rotary_factor", 1);
    layer.rope_factor = static_cast<float>(rope.number_or("factor", 1));
  }
  if (!(partial > 0 && partial <= 1))
    bad_input("config.json: partial_rotary_factor must be in (0, 1], found {}", partial);
  layer.rope_theta = static_cast<float>(theta);
  layer.rotating_pairs = static_cast<std::int64_t>(partial * static_cast<double>(layer.head_dim) / 2);
}

}  // namespace

std::vector<float> rope_frequencies(const LayerConfig& layer) {
  std::vector<float> frequencies(static_cast<std::size_t>(layer.head_dim / 2), 0.0f);
  for (std::int64_t i = 0; i < layer.rotating_pairs; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(layer.head_dim);
    frequencies[i] = 1.0f / std::pow(layer.rope_theta, exponent) / layer.rope_factor;
  }
  return frequencies;
}

ModelConfig config_from_hugging_face(std::string_view json) {
  const Json document = parse(json);
  const Fields top(document, "config");
  const std::string type = top.text_or("model_type", "");
  const bool gemma3 = type == "gemma3_text";
  const bool diffusion = type == "diffusion_gemma";
  if (!gemma3 && !diffusion && type != "gemma4" && type != "gemma4_text") {
    fail(ErrorKind::unsupported,
         "config.json: model_type \"{}\" is not one that dgemma runs; expected diffusion_gemma, gemma4, gemma4_text or "
         "gemma3_text",
         type);
  }
  const Fields text = top.has("text_config") ? top.object("text_config") : top;

  ModelConfig config;
  config.vocabulary = text.integer("vocab_size");
  config.hidden = text.integer("hidden_size");
  config.intermediate = text.integer("intermediate_size");
  config.sliding_window = text.integer("sliding_window");
  config.max_positions = text.integer_or("max_position_embeddings", 262144);
  config.rms_norm_eps = static_cast<float>(text.number_or("rms_norm_eps", 1e-6));
  config.final_logit_softcapping = static_cast<float>(text.number_or("final_logit_softcapping", 0));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  const std::int64_t layers = text.integer("num_hidden_layers");
  if (layers < 1 || layers > 512) bad_input("config.json: num_hidden_layers must be 1 .. 512, found {}", layers);
  if (diffusion) config.canvas_length = top.integer_or("canvas_length", 256);
  if (gemma3) {
    const double scalar = text.number_or("query_pre_attn_scalar", 256);
    if (!(scalar > 0)) bad_input("config.json: query_pre_attn_scalar must be positive, found {}", scalar);
    config.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
    config.value_norm = false;
  } else {
    config.experts = text.integer("num_experts");
    config.experts_used = text.integer("top_k_experts");
    config.moe_intermediate = text.integer("moe_intermediate_size");
  }

  const std::int64_t head_dim = text.integer("head_dim");
  const std::int64_t kv_heads = text.integer("num_key_value_heads");
  const std::vector<bool> sliding = sliding_layers(text, layers, !gemma3);
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerConfig layer;
    layer.sliding = sliding[i];
    layer.heads = text.integer("num_attention_heads");
    layer.kv_heads = kv_heads;
    layer.head_dim = head_dim;
    if (!layer.sliding && !gemma3) {
      layer.head_dim = text.integer_or("global_head_dim", head_dim);
      layer.kv_heads = text.integer_or("num_global_key_value_heads", kv_heads);
      layer.shares_key_value = true;
    }
    const std::string index = std::to_string(i);
    if (text.has("per_layer_config") && text.object("per_layer_config").has(index.c_str())) {
      const Fields overrides = text.object("per_layer_config").object(index.c_str());
      layer.head_dim = overrides.integer_or("head_dim", layer.head_dim);
      layer.kv_heads = overrides.integer_or("num_key_value_heads", layer.kv_heads);
    }
    read_rope(layer, text);
    config.layers.push_back(layer);
  }
  config.validate();
  return config;
}

}  // namespace dgemma
