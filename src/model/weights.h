// All parameters of one model. Matrices are views into the checkpoint's files in their stored format; vectors are small
// and kept as f32. Knows neither names nor files.
#pragma once

#include <optional>
#include <vector>

#include "ops/experts.h"
#include "tensor/view.h"

namespace dgemma {

using FloatVector = std::vector<float>;

// A gated MLP: down(gelu_tanh(gate x) * (up x)).
struct GatedMlp {
  WeightView gate, up, down;
};

struct ExpertBranch {
  WeightView router;             // [experts, hidden]
  FloatVector router_scale;      // [hidden], already times hidden^-1/2
  FloatVector per_expert_scale;  // [experts]
  ExpertWeights experts;
  FloatVector pre_norm, post_norm;  // pre_feedforward_layernorm_2, post_feedforward_layernorm_2
  FloatVector dense_post_norm;      // post_feedforward_layernorm_1
};

struct Layer {
  FloatVector input_norm, post_attention_norm;
  WeightView q, k, v, o;  // v is empty on layers whose values are the raw keys
  FloatVector q_norm, k_norm;
  FloatVector rope_frequencies;  // [head_dim / 2]
  FloatVector pre_feedforward_norm, post_feedforward_norm;
  GatedMlp dense;
  std::optional<ExpertBranch> experts;
  float encoder_scalar = 1, decoder_scalar = 1;
};

struct Weights {
  WeightView embedding;  // [vocabulary, hidden]: input table, self-conditioning matrix and, when tied, the head
  WeightView head;       // = embedding when tied
  FloatVector final_norm;
  FloatVector self_conditioning_norm;  // empty: the checkpoint has no decoder role
  GatedMlp self_conditioning;
  std::vector<Layer> layers;
};

}  // namespace dgemma
