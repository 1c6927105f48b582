#include "engine/gguf_keys.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace dgemma {
namespace {

constexpr float kNeverTurns = 1e30f;  // divides the frequency of a pair that passes unrotated

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

}  // namespace

void add_model_keys(GgufWriter& out, std::string_view architecture, const ModelConfig& config) {
  const Kinds kinds = kinds_of(config);
  const auto key = [&](const char* name) { return std::string(architecture) + "." + name; };
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
  // Absent means causal, which an autoregressive model is.
  if (config.canvas_length > 0) out.add_boolean(key("attention.causal"), false);
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

std::vector<float> rope_divisors(const ModelConfig& config) {
  const LayerConfig full = kinds_of(config).full;
  std::vector<float> out(static_cast<std::size_t>(full.head_dim / 2), kNeverTurns);
  std::fill_n(out.begin(), full.rotating_pairs, 1.0f);
  return out;
}

}  // namespace dgemma
