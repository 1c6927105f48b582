#include "random/shapes.h"

#include "base/error.h"

namespace dgemma {
namespace {

struct HeadShape {
  std::int64_t kv_heads, head_dim;
};

void add_layers(ModelConfig& config, std::int64_t layers, std::int64_t heads, HeadShape sliding, HeadShape full) {
  if (layers < 1 || layers > 512) bad_input("{} layers, expected 1 to 512", layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerConfig layer;
    layer.sliding = (i + 1) % 6 != 0 && i + 1 != layers;
    const HeadShape shape = layer.sliding ? sliding : full;
    layer.heads = heads;
    layer.kv_heads = shape.kv_heads;
    layer.head_dim = shape.head_dim;
    layer.rope_theta = layer.sliding ? 1e4f : 1e6f;
    layer.rotating_pairs = layer.sliding ? shape.head_dim / 2 : shape.head_dim / 8;
    layer.shares_key_value = !layer.sliding;
    config.layers.push_back(layer);
  }
  config.validate();
}

}  // namespace

ModelConfig diffusion_gemma_config(std::int64_t layers) {
  ModelConfig config;
  config.vocabulary = 262144;
  config.hidden = 2816;
  config.intermediate = 2112;
  config.moe_intermediate = 704;
  config.experts = 128;
  config.experts_used = 8;
  config.sliding_window = 1024;
  config.max_positions = 262144;
  config.canvas_length = 256;
  config.final_logit_softcapping = 30;
  config.embedding_scale = 53;
  add_layers(config, layers, 16, {8, 256}, {2, 512});
  return config;
}

ModelConfig small_config(std::int64_t layers) {
  ModelConfig config;
  config.vocabulary = 1024;
  config.hidden = 256;
  config.intermediate = 96;
  config.moe_intermediate = 32;
  config.experts = 16;
  config.experts_used = 4;
  config.sliding_window = 64;
  config.max_positions = 4096;
  config.canvas_length = 32;
  config.final_logit_softcapping = 30;
  config.embedding_scale = 16;
  add_layers(config, layers, 4, {2, 64}, {1, 128});
  return config;
}

}  // namespace dgemma
