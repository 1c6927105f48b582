// The numbers of one model of the family (docs/model.md): DiffusionGemma, its autoregressive Gemma 4 sibling, dense
// Gemma 3. Names are the reference's (transformers DiffusionGemmaTextConfig).
#pragma once

#include <cstdint>
#include <vector>

namespace dgemma {

struct LayerConfig {
  bool sliding = true;  // sliding_attention or full_attention
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  float rope_theta = 0;
  std::int64_t rotating_pairs = 0;  // of head_dim / 2; the rest pass unrotated ("proportional" rope)
  float rope_factor = 1;            // divides every frequency
  bool shares_key_value = false;    // no v_proj: values are the raw key projection
};

struct ModelConfig {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;      // dense MLP and self-conditioning MLP
  std::int64_t moe_intermediate = 0;  // 0: no experts
  std::int64_t experts = 0;
  std::int64_t experts_used = 0;
  std::int64_t sliding_window = 0;
  std::int64_t max_positions = 0;
  std::int64_t canvas_length = 0;  // 0: autoregressive only
  float rms_norm_eps = 1e-6f;
  float final_logit_softcapping = 0;  // 0: none
  float attention_scale = 1;
  float embedding_scale = 1;
  bool value_norm = true;  // Gemma 4; Gemma 3 leaves values as they are
  std::vector<LayerConfig> layers;

  // Throws bad_input that names every number out of range.
  void validate() const;
};

}  // namespace dgemma
