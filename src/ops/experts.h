// The mixture-of-experts branch: router choice and grouped expert products (spec: Gemma 4 MoE block).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/context.h"
#include "tensor/view.h"

namespace dgemma {

// Chosen experts of each row: `used` ids and weights a row, by falling probability.
struct Routing {
  std::int64_t used = 0;
  std::vector<std::int32_t> experts;  // [rows * used]
  std::vector<float> weights;         // [rows * used]
};

// softmax over the experts, the `used` largest (lowest id on ties), renormalised to sum to 1, then times
// per_expert_scale.
void route(Routing& out, View logits, std::int64_t used, std::span<const float> per_expert_scale);

// Weights of all experts: rows of expert e are a slice. Either gate_up is fused [experts * 2 * width, hidden] (gate
// rows first in each expert), or gate and up are apart [experts * width, hidden]. down is [experts * hidden, width].
struct ExpertWeights {
  std::int64_t count = 0;
  WeightView gate_up, gate, up, down;
};

// Buffers that survive between calls, so that the forward allocates nothing in steady state.
struct ExpertBuffers {
  Matrix gate_up, out;
  std::vector<std::int32_t> slots, rows;  // (row, rank) -> slot, slot -> row; the slots of an expert are neighbours
};

// out[i] = sum over the row's experts of weight * down(gelu_tanh(gate m) * (up m)); summed by rank, so that the rows
// beside it do not matter.
void experts(Context& c, View out, View m, const Routing& routing, const ExpertWeights& weights,
             ExpertBuffers& buffers);

}  // namespace dgemma
