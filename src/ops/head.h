// The vocabulary head. For canvases it streams over tiles of the vocabulary: logits are never a [rows, vocabulary]
// tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/context.h"
#include "ops/token_filter.h"
#include "tensor/view.h"

namespace dgemma {

// How one row's distribution softmax(z / temperature) is drawn from; random numbers are random(seed, stream, index).
struct RowDraw {
  float temperature = 1.0f;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // one stream a (sequence, canvas, step)
  std::uint64_t row = 0;     // row within the canvas
};

// What the sampler needs of one row.
struct RowPrediction {
  std::int32_t argmax = 0;  // lowest id on ties
  std::int32_t sample = 0;
  float entropy = 0;     // nats
  float confidence = 0;  // largest probability
};

struct HeadBuffers {
  Matrix logits, table;
};

// z = soft_cap * tanh(hidden table^T / soft_cap) (soft_cap <= 0: none), processed as z / temperature. `soft`, when
// given [rows, cols], becomes the expected table row sum_v p_v table_v: the self-conditioning signal before its scale
// (report section 3; the table is both head and embedding, so that one sweep serves both).
// A filter restricts the processed distribution, so that sample, entropy and signal see only what it keeps; the argmax
// is the same.
void head_predict(Context& c, std::span<RowPrediction> out, View soft, View hidden, WeightView table, float soft_cap,
                  std::span<const RowDraw> draws, const TokenFilter& filter, HeadBuffers& buffers);

// Soft-capped logits of a few rows, [rows, vocabulary]: for autoregressive decoding.
void head_logits(Context& c, View logits, View hidden, WeightView table, float soft_cap);

}  // namespace dgemma
