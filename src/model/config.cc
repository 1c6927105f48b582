#include "model/config.h"

#include <string>

#include "base/error.h"

namespace dgemma {

void ModelConfig::validate() const {
  std::string problems;
  const auto demand = [&](bool good, std::string_view what, std::int64_t found) {
    if (!good) problems += fmt::format("\n  {} (found {})", what, found);
  };
  demand(vocabulary > 0 && vocabulary <= 1 << 24, "vocab_size must be 1 .. 2^24", vocabulary);
  demand(hidden > 0 && hidden <= 1 << 16, "hidden_size must be 1 .. 65536", hidden);
  demand(intermediate > 0 && intermediate <= 1 << 20, "intermediate_size must be 1 .. 2^20", intermediate);
  demand(experts >= 0 && experts <= 1024, "num_experts must be 0 .. 1024", experts);
  if (experts > 0) {
    demand(experts_used >= 1 && experts_used <= experts, "top_k_experts must be 1 .. num_experts", experts_used);
    demand(moe_intermediate > 0 && moe_intermediate <= 1 << 20, "moe_intermediate_size must be 1 .. 2^20",
           moe_intermediate);
  }
  demand(sliding_window >= 2 && sliding_window <= 1 << 20, "sliding_window must be 2 .. 2^20", sliding_window);
  demand(max_positions > 0 && max_positions <= 1 << 24, "max_position_embeddings must be 1 .. 2^24", max_positions);
  demand(canvas_length >= 0 && canvas_length <= max_positions, "canvas_length must be 0 .. max positions",
         canvas_length);
  demand(rms_norm_eps > 0 && rms_norm_eps < 1, "rms_norm_eps must be in (0, 1)", 0);
  demand(!layers.empty() && layers.size() <= 512, "num_hidden_layers must be 1 .. 512",
         static_cast<std::int64_t>(layers.size()));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerConfig& layer = layers[i];
    const auto index = static_cast<std::int64_t>(i);
    const auto in_layer = [&](bool good, std::string_view what) {
      demand(good, fmt::format("layer {}: {}", index, what), index);
    };
    in_layer(layer.heads > 0 && layer.heads <= 1024, "num_attention_heads must be 1 .. 1024");
    in_layer(layer.kv_heads > 0 && layer.heads % std::max<std::int64_t>(layer.kv_heads, 1) == 0,
             "num_key_value_heads must divide num_attention_heads");
    in_layer(layer.head_dim > 0 && layer.head_dim <= 4096 && layer.head_dim % 2 == 0,
             "head_dim must be even, 2 .. 4096");
    in_layer(layer.rotating_pairs >= 0 && layer.rotating_pairs <= layer.head_dim / 2,
             "rotating pairs exceed head_dim / 2");
    in_layer(layer.rope_theta > 0 && layer.rope_factor > 0, "rope_theta and rope factor must be positive");
  }
  if (!problems.empty()) bad_input("the model's configuration is not usable:{}", problems);
}

}  // namespace dgemma
