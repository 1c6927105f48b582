#include "model/bind.h"

#include <fmt/ranges.h>

#include <cmath>
#include <string>

#include "base/bits.h"
#include "base/error.h"
#include "kernels/dequantize.h"
#include "model/hf_config.h"
#include "ops/linear.h"

namespace dgemma {
namespace {

class Binder {
 public:
  Binder(const Checkpoint& checkpoint, Naming naming) : checkpoint_(checkpoint), naming_(naming) { choose_prefix(); }

  // Hugging Face names of parameters follow the text model's prefix.
  TensorName name(std::string_view hugging_face, std::string_view gguf) const {
    return {prefix_ + std::string(hugging_face), std::string(gguf)};
  }
  TensorName layer(std::size_t index, std::string_view hugging_face, std::string_view gguf) const {
    return {fmt::format("{}layers.{}.{}", prefix_, index, hugging_face), fmt::format("blk.{}.{}", index, gguf)};
  }

  bool has(const TensorName& names) const { return checkpoint_.find(chosen(names)) != nullptr; }

  // A matrix [rows, cols]; leading dimensions (experts) count as rows.
  WeightView matrix(const TensorName& names, std::int64_t rows, std::int64_t cols) {
    const std::string& name = chosen(names);
    const TensorInfo* tensor = use(names);
    if (tensor == nullptr) {
      problems_ += fmt::format("\n  {}: missing", name);
      return {};
    }
    std::int64_t found_rows = 1;
    for (std::size_t i = 0; i + 1 < tensor->shape.size(); ++i) found_rows *= tensor->shape[i];
    const std::int64_t found_cols = tensor->shape.empty() ? 1 : tensor->shape.back();
    if (found_rows != rows || found_cols != cols) {
      problems_ +=
          fmt::format("\n  {}: expected [{}, {}], found [{}]", name, rows, cols, fmt::join(tensor->shape, ", "));
      return {};
    }
    if (dequantize_for(static_cast<std::uint32_t>(tensor->dtype)) == nullptr) {
      problems_ += fmt::format("\n  {}: type {} cannot hold weights", name, dtype_name(tensor->dtype));
      return {};
    }
    return {tensor->bytes.data(), rows, cols, tensor->dtype};
  }

  // A vector of `size` as f32; `offset` is added to every element (Gemma 3 stores norm weights minus one in Hugging
  // Face files).
  FloatVector vector(const TensorName& names, std::int64_t size, float offset = 0) {
    const std::string& name = chosen(names);
    const TensorInfo* tensor = use(names);
    std::int64_t found = 1;
    for (const std::int64_t dimension : tensor == nullptr ? std::vector<std::int64_t>{} : tensor->shape)
      found *= dimension;
    if (tensor != nullptr && found == size && size % block_shape(tensor->dtype).elements != 0) tensor = nullptr;
    FloatVector out(static_cast<std::size_t>(size), 0.0f);
    if (tensor == nullptr || found != size) {
      problems_ += tensor == nullptr ? fmt::format("\n  {}: missing", name)
                                     : fmt::format("\n  {}: expected {} elements, found {}", name, size, found);
      return out;
    }
    const WeightView view = matrix_of_any_rank(*tensor, size);
    if (!view) return out;
    const float* values = weight_rows_f32(view, 0, 1, out.data());
    if (values != out.data()) out.assign(values, values + size);
    for (float& value : out) value += offset;
    return out;
  }

  void finish() const {
    if (!problems_.empty()) bad_input("the checkpoint does not hold what its configuration asks for:{}", problems_);
  }
  // The tensors that were found, in the order of asking.
  const std::vector<TensorName>& used() const { return used_; }

 private:
  const std::string& chosen(const TensorName& names) const {
    return naming_ == Naming::gguf ? names.gguf : names.hugging_face;
  }

  const TensorInfo* use(const TensorName& names) {
    const TensorInfo* tensor = checkpoint_.find(chosen(names));
    if (tensor != nullptr) used_.push_back(names);
    return tensor;
  }

  WeightView matrix_of_any_rank(const TensorInfo& tensor, std::int64_t size) {
    if (dequantize_for(static_cast<std::uint32_t>(tensor.dtype)) == nullptr) {
      problems_ += fmt::format("\n  {}: type {} cannot hold weights", tensor.name, dtype_name(tensor.dtype));
      return {};
    }
    return {tensor.bytes.data(), 1, size, tensor.dtype};
  }

  // DiffusionGemma keeps the text model under model.decoder, Gemma 4 under model.language_model, Gemma 3 under model.
  void choose_prefix() {
    prefix_ = "model.";
    for (const char* candidate : {"model.decoder.", "model.language_model.", "language_model.model."}) {
      if (checkpoint_.find(std::string(candidate) + "embed_tokens.weight") != nullptr) prefix_ = candidate;
    }
  }

  const Checkpoint& checkpoint_;
  Naming naming_;
  std::string prefix_;
  std::string problems_;
  std::vector<TensorName> used_;
};

GatedMlp bind_mlp(Binder& b, const TensorName& gate, const TensorName& up, const TensorName& down, std::int64_t hidden,
                  std::int64_t width) {
  return {b.matrix(gate, width, hidden), b.matrix(up, width, hidden), b.matrix(down, hidden, width)};
}

ExpertBranch bind_experts(Binder& b, const ModelConfig& config, std::size_t i) {
  const std::int64_t hidden = config.hidden, width = config.moe_intermediate, count = config.experts;
  ExpertBranch e;
  e.router = b.matrix(b.layer(i, "router.proj.weight", "ffn_gate_inp.weight"), count, hidden);
  e.router_scale = b.vector(b.layer(i, "router.scale", "ffn_gate_inp.scale"), hidden);
  for (float& scale : e.router_scale) scale *= 1.0f / std::sqrt(static_cast<float>(hidden));
  e.per_expert_scale = b.vector(b.layer(i, "router.per_expert_scale", "ffn_down_exps.scale"), count);
  e.pre_norm = b.vector(b.layer(i, "pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"), hidden);
  e.post_norm = b.vector(b.layer(i, "post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight"), hidden);
  e.dense_post_norm = b.vector(b.layer(i, "post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"), hidden);
  e.experts.count = count;
  const TensorName fused = b.layer(i, "experts.gate_up_proj", "ffn_gate_up_exps.weight");
  const TensorName split_gate = b.layer(i, "experts.gate_proj", "ffn_gate_exps.weight");
  if (b.has(fused) || !b.has(split_gate)) {
    e.experts.gate_up = b.matrix(fused, count * 2 * width, hidden);
  } else {
    e.experts.gate = b.matrix(split_gate, count * width, hidden);
    e.experts.up = b.matrix(b.layer(i, "experts.up_proj", "ffn_up_exps.weight"), count * width, hidden);
  }
  e.experts.down = b.matrix(b.layer(i, "experts.down_proj", "ffn_down_exps.weight"), count * hidden, width);
  return e;
}

Layer bind_layer(Binder& b, Naming naming, const ModelConfig& config, std::size_t i) {
  const LayerConfig& shape = config.layers[i];
  const std::int64_t hidden = config.hidden;
  const std::int64_t q_width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  const float offset = naming == Naming::hugging_face && !config.value_norm ? 1.0f : 0.0f;
  Layer w;
  w.input_norm = b.vector(b.layer(i, "input_layernorm.weight", "attn_norm.weight"), hidden, offset);
  w.q = b.matrix(b.layer(i, "self_attn.q_proj.weight", "attn_q.weight"), q_width, hidden);
  w.k = b.matrix(b.layer(i, "self_attn.k_proj.weight", "attn_k.weight"), kv_width, hidden);
  if (!shape.shares_key_value) w.v = b.matrix(b.layer(i, "self_attn.v_proj.weight", "attn_v.weight"), kv_width, hidden);
  w.o = b.matrix(b.layer(i, "self_attn.o_proj.weight", "attn_output.weight"), hidden, q_width);
  w.q_norm = b.vector(b.layer(i, "self_attn.q_norm.weight", "attn_q_norm.weight"), shape.head_dim, offset);
  w.k_norm = b.vector(b.layer(i, "self_attn.k_norm.weight", "attn_k_norm.weight"), shape.head_dim, offset);
  w.rope_frequencies = rope_frequencies(shape);
  w.post_attention_norm =
      b.vector(b.layer(i, "post_attention_layernorm.weight", "post_attention_norm.weight"), hidden, offset);
  w.pre_feedforward_norm = b.vector(b.layer(i, "pre_feedforward_layernorm.weight", "ffn_norm.weight"), hidden, offset);
  w.post_feedforward_norm =
      b.vector(b.layer(i, "post_feedforward_layernorm.weight", "post_ffw_norm.weight"), hidden, offset);
  w.dense = bind_mlp(b, b.layer(i, "mlp.gate_proj.weight", "ffn_gate.weight"),
                     b.layer(i, "mlp.up_proj.weight", "ffn_up.weight"),
                     b.layer(i, "mlp.down_proj.weight", "ffn_down.weight"), hidden, config.intermediate);
  if (config.experts > 0) {
    w.experts = bind_experts(b, config, i);
    w.decoder_scalar = b.vector(b.layer(i, "layer_scalar", "layer_output_scale.weight"), 1)[0];
    w.encoder_scalar = w.decoder_scalar;  // an autoregressive checkpoint has one
    const TensorName own{fmt::format("model.encoder.language_model.layers.{}.layer_scalar", i),
                         fmt::format("blk.{}.enc_layer_output_scale.weight", i)};
    if (b.has(own)) w.encoder_scalar = b.vector(own, 1)[0];
  }
  return w;
}

}  // namespace

Weights bind(const Checkpoint& checkpoint, Naming naming, ModelConfig& config, std::vector<TensorName>* used) {
  Binder b(checkpoint, naming);
  const float offset = naming == Naming::hugging_face && !config.value_norm ? 1.0f : 0.0f;
  Weights w;
  w.embedding = b.matrix(b.name("embed_tokens.weight", "token_embd.weight"), config.vocabulary, config.hidden);
  w.head = w.embedding;
  const TensorName untied{"lm_head.weight", "output.weight"};
  if (b.has(untied)) w.head = b.matrix(untied, config.vocabulary, config.hidden);
  w.final_norm = b.vector(b.name("norm.weight", "output_norm.weight"), config.hidden, offset);
  if (config.canvas_length > 0) {
    w.self_conditioning_norm =
        b.vector(b.name("self_conditioning.pre_norm.weight", "self_cond_pre_norm.weight"), config.hidden);
    w.self_conditioning = bind_mlp(b, b.name("self_conditioning.gate_proj.weight", "self_cond_gate.weight"),
                                   b.name("self_conditioning.up_proj.weight", "self_cond_up.weight"),
                                   b.name("self_conditioning.down_proj.weight", "self_cond_down.weight"), config.hidden,
                                   config.intermediate);
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) w.layers.push_back(bind_layer(b, naming, config, i));
  b.finish();
  if (used != nullptr) *used = b.used();
  if (w.embedding.dtype != DType::f32) config.embedding_scale = round_to_bf16(config.embedding_scale);
  return w;
}

}  // namespace dgemma
