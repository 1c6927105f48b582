#include "model/gguf_config.h"

#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"

namespace dgemma {
namespace {

// Reads the keys of one architecture, which carry its name in front.
class Keys {
 public:
  Keys(const GgufFile& file, std::string architecture) : file_(file), prefix_(architecture + ".") {}

  std::int64_t integer(const std::string& key) const {
    const auto value = file_.integer(prefix_ + key);
    if (!value) bad_input("GGUF metadata: {}{} is missing", prefix_, key);
    return *value;
  }
  std::int64_t integer_or(const std::string& key, std::int64_t fallback) const {
    return file_.integer(prefix_ + key).value_or(fallback);
  }
  double number_or(const std::string& key, double fallback) const {
    return file_.number(prefix_ + key).value_or(fallback);
  }

  // One value a layer; a single value counts for all.
  std::vector<std::int64_t> per_layer(const std::string& key, std::int64_t layers) const {
    auto values = file_.integers(prefix_ + key);
    if (!values) bad_input("GGUF metadata: {}{} is missing", prefix_, key);
    if (values->size() == 1) values->resize(static_cast<std::size_t>(layers), values->front());
    if (static_cast<std::int64_t>(values->size()) != layers) {
      bad_input("GGUF metadata: {}{} has {} entries, the model {} layers", prefix_, key, values->size(), layers);
    }
    return *values;
  }

  // True: a sliding layer. Without the key every sixth layer is full.
  std::vector<bool> sliding(std::int64_t layers) const {
    const std::string key = prefix_ + "attention.sliding_window_pattern";
    const GgufValue* value = file_.value(key);
    std::vector<bool> out;
    if (value != nullptr && value->is_array) {
      out = *file_.booleans(key);
      if (static_cast<std::int64_t>(out.size()) != layers) {
        bad_input("GGUF metadata: {} has {} entries, the model {} layers", key, out.size(), layers);
      }
      return out;
    }
    const std::int64_t period = value != nullptr ? *file_.integer(key) : 6;
    if (period < 1) bad_input("GGUF metadata: {} must be at least 1, found {}", key, period);
    for (std::int64_t i = 0; i < layers; ++i) out.push_back((i + 1) % period != 0);
    return out;
  }

  void refuse_unless_zero(const std::string& key) const {
    if (const std::int64_t value = integer_or(key, 0); value != 0) {
      fail(ErrorKind::unsupported, "GGUF metadata: {}{} is {}; models with this feature are not built", prefix_, key,
           value);
    }
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

// Rotating pairs of a full layer: the divisors in rope_freqs.weight are 1 for those and huge for the rest.
std::int64_t rotating_pairs(const GgufFile& file, std::int64_t head_dim) {
  const TensorInfo* divisors = file.find("rope_freqs.weight");
  if (divisors == nullptr) return head_dim / 2;
  if (divisors->dtype != DType::f32 || divisors->shape != std::vector<std::int64_t>{head_dim / 2}) {
    bad_input("rope_freqs.weight: expected {} values of F32, one for each pair of a full layer's head", head_dim / 2);
  }
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    float divisor;
    std::memcpy(&divisor, divisors->bytes.data() + i * 4, sizeof divisor);
    if (divisor == 1.0f && pairs == i) {
      ++pairs;
    } else if (!(divisor > 1e9f)) {
      fail(ErrorKind::unsupported, "rope_freqs.weight: divisor {} of pair {} is neither 1 nor infinite", divisor, i);
    }
  }
  return pairs;
}

}  // namespace

ModelConfig config_from_gguf(const GgufFile& file) {
  const std::string architecture(file.string("general.architecture").value_or(""));
  const bool gemma3 = architecture == "gemma3", diffusion = architecture == "diffusion-gemma";
  if (!gemma3 && !diffusion && architecture != "gemma4") {
    fail(ErrorKind::unsupported,
         "general.architecture \"{}\" is not one that dgemma runs; expected diffusion-gemma, gemma4 or gemma3",
         architecture);
  }
  const Keys keys(file, architecture);
  keys.refuse_unless_zero("attention.shared_kv_layers");
  keys.refuse_unless_zero("embedding_length_per_layer_input");

  ModelConfig config;
  const TensorInfo* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    bad_input("token_embd.weight: expected a matrix, found none");
  config.vocabulary = embedding->shape[0];
  config.hidden = keys.integer("embedding_length");
  const std::int64_t layers = keys.integer("block_count");
  if (layers < 1 || layers > 512) bad_input("GGUF metadata: block_count must be 1 .. 512, found {}", layers);
  config.intermediate = keys.per_layer("feed_forward_length", layers).front();
  config.sliding_window = keys.integer("attention.sliding_window");
  config.max_positions = keys.integer("context_length");
  config.rms_norm_eps = static_cast<float>(keys.number_or("attention.layer_norm_rms_epsilon", 1e-6));
  config.final_logit_softcapping = static_cast<float>(keys.number_or("final_logit_softcapping", 0));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  if (diffusion) {
    const auto canvas = file.integer("diffusion.canvas_length");
    if (!canvas) bad_input("GGUF metadata: diffusion.canvas_length is missing");
    config.canvas_length = *canvas;
  }
  if (gemma3) {
    config.value_norm = false;
  } else {
    config.experts = keys.integer("expert_count");
    config.experts_used = keys.integer("expert_used_count");
    config.moe_intermediate = keys.integer("expert_feed_forward_length");
  }

  const std::vector<std::int64_t> heads = keys.per_layer("attention.head_count", layers);
  const std::vector<std::int64_t> kv_heads = keys.per_layer("attention.head_count_kv", layers);
  const std::vector<bool> sliding = keys.sliding(layers);
  const std::int64_t head_dim = keys.integer("attention.key_length");
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerConfig layer;
    layer.sliding = sliding[i];
    layer.heads = heads[i];
    layer.kv_heads = kv_heads[i];
    layer.head_dim = layer.sliding ? keys.integer_or("attention.key_length_swa", head_dim) : head_dim;
    layer.rope_theta = static_cast<float>(layer.sliding ? keys.number_or("rope.freq_base_swa", 10000)
                                                        : keys.number_or("rope.freq_base", 1000000));
    layer.rotating_pairs = layer.sliding ? layer.head_dim / 2 : rotating_pairs(file, layer.head_dim);
    // Gemma 3 scales its full layers' positions; without the key the factor is 1.
    if (!layer.sliding) layer.rope_factor = static_cast<float>(keys.number_or("rope.scaling.factor", 1));
    layer.shares_key_value = !gemma3 && file.find(fmt::format("blk.{}.attn_v.weight", i)) == nullptr;
    config.layers.push_back(layer);
  }
  // Gemma 3 scales scores by the query's own width, which is the head size in every published text model but the 27B.
  if (gemma3) config.attention_scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  config.validate();
  return config;
}

}  // namespace dgemma
