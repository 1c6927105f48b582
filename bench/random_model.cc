#include "random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "kernels/quantize.h"
#include "model/hf_config.h"
#include "random/shapes.h"

namespace dgemma::bench {
namespace {

// Different rows of a matrix: a prime, so that neither heads nor experts repeat in step.
constexpr std::int64_t kTileRows = 1021;

// Query and key norm weights that give scores of a few units, as trained attention has, rather than the 16 of unit
// weights at a score scale of one.
constexpr float kHeadNorm = 0.4f;

FloatVector constant(std::int64_t size, float value) { return FloatVector(static_cast<std::size_t>(size), value); }

// Uniform with the variance 1 / cols, so that a unit-RMS input gives a unit-RMS output.
std::vector<float> random_rows(std::int64_t rows, std::int64_t cols, std::uint64_t stream) {
  std::vector<float> out(static_cast<std::size_t>(rows * cols));
  const double scale = std::sqrt(12.0 / static_cast<double>(cols));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>((random_uniform(1, stream, i) - 0.5) * scale);
  }
  return out;
}

std::vector<std::byte> encode(DType dtype, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> out(static_cast<std::size_t>(row_bytes(dtype, count)));
  if (dtype == DType::f32) {
    std::memcpy(out.data(), values.data(), out.size());
  } else {
    const QuantizeFunction quantize = quantize_for(static_cast<std::uint32_t>(dtype));
    DGEMMA_CHECK(quantize != nullptr);
    quantize(values.data(), out.data(), count);
  }
  return out;
}

}  // namespace

RandomModel::Formats RandomModel::formats(std::string_view type) {
  if (type == "f32") return {DType::f32, DType::f32, DType::f32, DType::f32};
  if (type == "bf16") return {DType::bf16, DType::bf16, DType::bf16, DType::bf16};
  if (type == "q8_0") return {DType::q8_0, DType::q8_0, DType::q8_0, DType::f32};
  if (type == "q4_k") return {DType::q4_k, DType::q5_0, DType::q6_k, DType::f32};
  bad_input("unknown weight type {}; expected f32, bf16, q8_0 or q4_k", type);
}

WeightView RandomModel::matrix(DType dtype, std::int64_t rows, std::int64_t cols) {
  const std::int64_t bytes = rows * row_bytes(dtype, cols);
  if (size_bytes_ + bytes > max_bytes_) {
    fail(ErrorKind::resource,
         "the random weights exceed {:.1f} GiB: take fewer --layers, a smaller --type, or raise --max-gib",
         static_cast<double>(max_bytes_) / 0x1p30);
  }
  size_bytes_ += bytes;
  std::vector<std::byte>& tile = tiles_[{dtype, cols}];
  if (tile.empty()) tile = encode(dtype, random_rows(kTileRows, cols, tiles_.size()));
  storage_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
  std::byte* out = storage_.back().get();
  // Each matrix starts at another row of the tile, or all would be the same matrix.
  std::int64_t row = static_cast<std::int64_t>(storage_.size()) * 97 % kTileRows;
  for (std::int64_t done = 0; done < rows; row = 0) {
    const std::int64_t count = std::min(rows - done, kTileRows - row);
    std::memcpy(out + done * row_bytes(dtype, cols), tile.data() + row * row_bytes(dtype, cols),
                static_cast<std::size_t>(count * row_bytes(dtype, cols)));
    done += count;
  }
  return {out, rows, cols, dtype};
}

GatedMlp RandomModel::mlp(const Formats& formats) {
  return {matrix(formats.matrix, config_.intermediate, config_.hidden),
          matrix(formats.matrix, config_.intermediate, config_.hidden),
          matrix(formats.down, config_.hidden, config_.intermediate)};
}

RandomModel::RandomModel(std::int64_t layers, std::string_view type, std::int64_t max_bytes)
    : config_(diffusion_gemma_config(layers)), max_bytes_(max_bytes) {
  const Formats stored = formats(type);
  const std::int64_t hidden = config_.hidden;
  weights_.embedding = weights_.head = matrix(stored.embedding, config_.vocabulary, hidden);
  weights_.final_norm = constant(hidden, 1);
  weights_.self_conditioning_norm = constant(hidden, 1);
  weights_.self_conditioning = mlp(stored);
  for (const LayerConfig& shape : config_.layers) {
    Layer w;
    const std::int64_t q_width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
    w.input_norm = w.post_attention_norm = w.pre_feedforward_norm = w.post_feedforward_norm = constant(hidden, 1);
    w.q = matrix(stored.matrix, q_width, hidden);
    w.k = matrix(stored.matrix, kv_width, hidden);
    if (!shape.shares_key_value) w.v = matrix(stored.matrix, kv_width, hidden);
    w.o = matrix(stored.matrix, hidden, q_width);
    w.q_norm = w.k_norm = constant(shape.head_dim, kHeadNorm);
    w.rope_frequencies = rope_frequencies(shape);
    w.dense = mlp(stored);
    ExpertBranch e;
    e.router = matrix(stored.router, config_.experts, hidden);
    e.router_scale = e.pre_norm = e.post_norm = e.dense_post_norm = constant(hidden, 1);
    e.per_expert_scale = constant(config_.experts, 1);
    e.experts.count = config_.experts;
    e.experts.gate_up = matrix(stored.matrix, config_.experts * 2 * config_.moe_intermediate, hidden);
    e.experts.down = matrix(stored.down, config_.experts * hidden, config_.moe_intermediate);
    w.experts = std::move(e);
    weights_.layers.push_back(std::move(w));
  }
  tiles_.clear();
}

}  // namespace dgemma::bench
