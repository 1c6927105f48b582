// The forward pass of the whole family (spec architecture.md sections 2.3 to 2.9), written once for every role.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/config.h"
#include "model/pass.h"
#include "model/slots.h"
#include "model/weights.h"
#include "ops/context.h"

namespace dgemma {

// Called after each layer with its index and slots; for tests and traces. The last layer's slots are those of the rows
// whose output is read; without any, they are empty and `routing` is another layer's.
using LayerObserver = std::function<void(std::size_t layer, const Slots& slots, const Routing& routing)>;

// Writes the input of layer 0 to activations' x [pass.rows, hidden]. `ids` are the rows' tokens; `signal` [pass.rows,
// hidden] holds for decoder rows the self-conditioning signal u (already scaled as an embedding); an empty view means
// zero for all, as in the first denoising step. Encoder rows ignore it.
void embed_pass(Context& c, const ModelConfig& config, const Weights& weights, const Pass& pass,
                std::span<const std::int32_t> ids, View signal, Activations& activations);

// All layers over x; appends the encoder segments' keys and values to their caches and advances them. Then x holds the
// pass's output rows only [output_rows, hidden], in their order.
void stack_forward(Context& c, const ModelConfig& config, const Weights& weights, const Pass& pass,
                   Activations& activations, const LayerObserver& observer = {});

// The final norm on rows of x, into `out`: input of the head.
void final_norm(Context& c, const ModelConfig& config, const Weights& weights, View out, View x);

}  // namespace dgemma
