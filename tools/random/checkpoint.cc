#include "random/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "engine/convert_gguf.h"
#include "engine/gguf_keys.h"
#include "kernels/quantize.h"
#include "parallel/thread_pool.h"
#include "random/blocks.h"
#include "random/vocabulary.h"

namespace dgemma {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;  // of ggml's block formats

// The columns that all embedding rows share, and their size beside the unit root mean square of the others.
constexpr std::int64_t kSharedColumns = 32;
constexpr float kShared = 4;
constexpr float kFinalRms = 12.5f;  // of the residual stream behind the last layer
constexpr float kHeadNorm = 0.4f;   // of queries and keys: scores of a few units at a score scale of one
constexpr float kLogits = 3.5f;     // standard deviation of the head's logits
// Standard deviation of an expert's preference, in units of what a row's content adds. That content is much the same in
// all rows behind attention, so that less is needed than the 1.2 that independent rows would need for 84 of 128.
constexpr float kPreference = 0.3f;
constexpr std::int64_t kHeadPatterns = 1021;  // different beginnings of embedding rows: a prime

// One value a row, or one row a matrix: what fills rows first .. first + rows - 1 at `out`.
using Fill = std::function<void(std::int64_t first, std::int64_t rows, std::byte* out)>;

struct Planned {
  TensorInfo info;
  Fill fill;
};

float sign_of_column(std::int64_t column) { return column % 2 == 0 ? 1.0f : -1.0f; }

// Standard normal (Box and Muller).
float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(random_uniform(seed, stream, 2 * index)));
  const double angle = 2 * std::numbers::pi * random_uniform(seed, stream, 2 * index + 1);
  return static_cast<float>(radius * std::cos(angle));
}

class Plan {
 public:
  explicit Plan(const RandomCheckpoint& checkpoint) : config_(checkpoint.config), seed_(checkpoint.seed) {
    const WeightMix mix = checkpoint.mix;
    if (mix != WeightMix::q4_k_m && mix != WeightMix::q8_0 && mix != WeightMix::q4_0 && mix != WeightMix::bf16) {
      fail(ErrorKind::unsupported, "random checkpoints are written as Q4_K_M, Q8_0, Q4_0 or BF16");
    }
    list();
    std::vector<TensorInfo> infos;
    for (const Planned& planned : tensors) infos.push_back(planned.info);
    const std::vector<DType> types = weight_types(mix, infos);
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].info.dtype = types[i];
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].fill = fill_of(i);
  }

  std::vector<Planned> tensors;

 private:
  enum class Kind { matrix, embedding, router, values };
  struct Content {
    Kind kind;
    std::size_t layer;          // of a router
    std::vector<float> values;  // of a vector
  };

  void add(std::string name, std::vector<std::int64_t> shape, Content content) {
    const bool is_vector = content.kind == Kind::values;
    tensors.push_back({{std::move(name), is_vector ? DType::f32 : DType::bf16, std::move(shape), {}}, {}});
    contents_.push_back(std::move(content));
  }
  void matrix(const std::string& name, std::vector<std::int64_t> shape) {
    add(name + ".weight", std::move(shape), {Kind::matrix, 0, {}});
  }
  void vector(const std::string& name, std::vector<float> values) {
    const auto size = static_cast<std::int64_t>(values.size());
    add(name, {size}, {Kind::values, 0, std::move(values)});
  }
  void constant(const std::string& name, std::int64_t size, float value) {
    vector(name, std::vector<float>(static_cast<std::size_t>(size), value));
  }
  // What a branch adds to the residual stream; nothing to the shared columns.
  void branch_norm(const std::string& name) {
    std::vector<float> values(static_cast<std::size_t>(config_.hidden), branch_rms());
    std::fill_n(values.begin(), kSharedColumns, 0.0f);
    vector(name, std::move(values));
  }

  // Two branches a layer add up to kFinalRms.
  float branch_rms() const {
    return std::sqrt((kFinalRms * kFinalRms - 1) / (2 * static_cast<float>(config_.layers.size())));
  }

  void list() {
    const std::int64_t hidden = config_.hidden, inner = config_.intermediate, experts = config_.experts;
    add("token_embd.weight", {config_.vocabulary, hidden}, {Kind::embedding, 0, {}});
    constant("output_norm.weight", hidden, kLogits);
    vector("rope_freqs.weight", rope_divisors(config_));
    if (config_.canvas_length > 0) {
      constant("self_cond_pre_norm.weight", hidden, 1);
      matrix("self_cond_gate", {inner, hidden});
      matrix("self_cond_up", {inner, hidden});
      matrix("self_cond_down", {hidden, inner});
    }
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
      const LayerConfig& layer = config_.layers[i];
      const std::int64_t q_width = layer.heads * layer.head_dim, kv_width = layer.kv_heads * layer.head_dim;
      const std::string blk = fmt::format("blk.{}.", i);
      constant(blk + "attn_norm.weight", hidden, 1);
      matrix(blk + "attn_q", {q_width, hidden});
      matrix(blk + "attn_k", {kv_width, hidden});
      if (!layer.shares_key_value) matrix(blk + "attn_v", {kv_width, hidden});
      matrix(blk + "attn_output", {hidden, q_width});
      constant(blk + "attn_q_norm.weight", layer.head_dim, kHeadNorm);
      constant(blk + "attn_k_norm.weight", layer.head_dim, kHeadNorm);
      branch_norm(blk + "post_attention_norm.weight");
      constant(blk + "ffn_norm.weight", hidden, 1);
      matrix(blk + "ffn_gate", {inner, hidden});
      matrix(blk + "ffn_up", {inner, hidden});
      matrix(blk + "ffn_down", {hidden, inner});
      constant(blk + "post_ffw_norm_1.weight", hidden, 1);
      constant(blk + "pre_ffw_norm_2.weight", hidden, 1);
      constant(blk + "post_ffw_norm_2.weight", hidden, 1);
      branch_norm(blk + "post_ffw_norm.weight");
      add(blk + "ffn_gate_inp.weight", {experts, hidden}, {Kind::router, i, {}});
      constant(blk + "ffn_gate_inp.scale", hidden, std::sqrt(static_cast<float>(hidden)));  // undoes the router's own
      matrix(blk + "ffn_gate_up_exps", {experts, 2 * config_.moe_intermediate, hidden});
      matrix(blk + "ffn_down_exps", {experts, hidden, config_.moe_intermediate});
      constant(blk + "ffn_down_exps.scale", experts, 1);
      constant(blk + "layer_output_scale.weight", 1, 1);
      if (config_.canvas_length > 0) constant(blk + "enc_layer_output_scale.weight", 1, 1);
    }
  }

  Fill fill_of(std::size_t index) const {
    const TensorInfo& info = tensors[index].info;
    const DType dtype = info.dtype;
    const std::int64_t cols = info.shape.back();
    const RandomStream random{seed_, index};
    const float deviation = 1 / std::sqrt(static_cast<float>(cols));  // unit inputs give unit outputs
    const Fill plain = [=](std::int64_t first, std::int64_t rows, std::byte* out) {
      random_rows(dtype, random, first, rows, cols, deviation, out);
    };
    switch (contents_[index].kind) {
      case Kind::matrix:
        return plain;
      case Kind::embedding:
        return embedding_fill(plain, dtype, deviation, index);
      case Kind::router:
        return router_fill(plain, index, contents_[index].layer);
      case Kind::values:
        return [values = contents_[index].values](std::int64_t, std::int64_t, std::byte* out) {
          std::memcpy(out, values.data(), values.size() * sizeof(float));
        };
    }
    fail(ErrorKind::internal, "tensor {} has no kind", info.name);
  }

  // Puts the shared columns into the first blocks of each row: one of a few beginnings, encoded once.
  Fill embedding_fill(const Fill& plain, DType dtype, float deviation, std::size_t stream) const {
    const std::int64_t cols = config_.hidden, head = std::max(kSharedColumns, block_shape(dtype).elements);
    const std::int64_t head_size = row_bytes(dtype, head), row_size = row_bytes(dtype, cols);
    std::vector<float> values(static_cast<std::size_t>(head));
    std::vector<std::byte> heads(static_cast<std::size_t>(kHeadPatterns * head_size));
    const QuantizeFunction quantize = quantize_for(static_cast<std::uint32_t>(dtype));
    DGEMMA_CHECK(quantize != nullptr);
    for (std::int64_t pattern = 0; pattern < kHeadPatterns; ++pattern) {
      random_rows(DType::f32, {~seed_, stream}, pattern, 1, head, deviation, values.data());
      for (std::int64_t i = 0; i < kSharedColumns; ++i) {
        values[static_cast<std::size_t>(i)] = kShared * deviation * sign_of_column(i);
      }
      quantize(values.data(), heads.data() + pattern * head_size, head);
    }
    return [=, heads = std::move(heads)](std::int64_t first, std::int64_t rows, std::byte* out) {
      plain(first, rows, out);
      for (std::int64_t row = 0; row < rows; ++row) {
        std::memcpy(out + row * row_size, heads.data() + (first + row) % kHeadPatterns * head_size,
                    static_cast<std::size_t>(head_size));
      }
    };
  }

  // An expert's logit: unit normal from a row's own content, and the expert's preference from the shared columns, which
  // the router sees divided by the residual stream's root mean square.
  Fill router_fill(const Fill& plain, std::size_t stream, std::size_t layer) const {
    const std::int64_t cols = config_.hidden;
    const float branches = static_cast<float>(2 * layer + 1), branch = branch_rms();
    const float rms = std::sqrt(1 + kShared * kShared * static_cast<float>(kSharedColumns) / static_cast<float>(cols) +
                                branches * branch * branch);
    const float unit = kPreference * rms / (kShared * static_cast<float>(kSharedColumns));
    return [=, seed = seed_](std::int64_t first, std::int64_t rows, std::byte* out) {
      plain(first, rows, out);
      for (std::int64_t row = 0; row < rows; ++row) {
        const float preference = unit * normal(~seed, stream, static_cast<std::uint64_t>(first + row));
        for (std::int64_t i = 0; i < kSharedColumns; ++i) {
          const float value = preference * sign_of_column(i);
          std::memcpy(out + (row * cols + i) * 4, &value, sizeof value);
        }
      }
    };
  }

  const ModelConfig& config_;
  std::uint64_t seed_;
  std::vector<Content> contents_;
};

void add_keys(GgufWriter& writer, const RandomCheckpoint& checkpoint, std::span<const TensorInfo> tensors) {
  const ModelConfig& config = checkpoint.config;
  const char* architecture = config.canvas_length > 0 ? "diffusion-gemma" : "gemma4";
  writer.add_string("general.architecture", architecture);
  writer.add_string("general.type", "model");
  writer.add_string("general.name",
                    fmt::format("random weights, {} layers, seed {}", config.layers.size(), checkpoint.seed));
  writer.add_string("general.size_label", size_label(tensors));
  add_model_keys(writer, architecture, config);
  if (config.canvas_length > 0) add_denoising_keys(writer, config.canvas_length, {});
  add_made_up_vocabulary(writer, config.vocabulary);
  writer.add_u32("general.quantization_version", kQuantizationVersion);
  writer.add_u32("general.file_type", file_type(checkpoint.mix, tensors));
}

std::vector<TensorInfo> infos_of(const Plan& plan) {
  std::vector<TensorInfo> out;
  for (const Planned& planned : plan.tensors) out.push_back(planned.info);
  return out;
}

}  // namespace

std::vector<TensorInfo> random_tensors(const RandomCheckpoint& checkpoint) { return infos_of(Plan(checkpoint)); }

std::uint64_t random_checkpoint_bytes(const RandomCheckpoint& checkpoint) {
  const std::vector<TensorInfo> tensors = random_tensors(checkpoint);
  GgufWriter writer;
  add_keys(writer, checkpoint, tensors);
  for (const TensorInfo& tensor : tensors) writer.add_tensor({tensor.name, tensor.dtype, tensor.shape, {}});
  return writer.file_bytes();
}

std::uint64_t write_random_checkpoint(const RandomCheckpoint& checkpoint, const std::filesystem::path& path,
                                      int threads, const std::function<void(const RandomProgress&)>& progress) {
  const Plan plan(checkpoint);
  GgufWriter writer;
  add_keys(writer, checkpoint, infos_of(plan));
  ThreadPool pool(threads);
  std::vector<std::byte> buffer;
  std::uint64_t done = 0, total = 0;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const Planned& planned = plan.tensors[i];
    TensorSource source{planned.info.name, planned.info.dtype, planned.info.shape, {}};
    const std::uint64_t size = size_bytes(source);
    source.bytes = [&, i, size]() -> std::span<const std::byte> {
      if (progress) progress({i, plan.tensors.size(), planned.info.name, done, total});
      if (buffer.size() < size) buffer.resize(size);
      const std::int64_t row_size = row_bytes(planned.info.dtype, planned.info.shape.back());
      const std::int64_t rows = static_cast<std::int64_t>(size) / row_size;
      pool.parallel_for(rows, 64, [&](std::int64_t begin, std::int64_t end, int) {
        planned.fill(begin, end - begin, buffer.data() + begin * row_size);
      });
      done += size;
      return {buffer.data(), size};
    };
    total += size;
    writer.add_tensor(std::move(source));
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (!error && space.available < writer.file_bytes()) {
    fail(ErrorKind::resource, "{}: needs {:.2f} GiB, the disk has {:.2f} GiB left", path.string(),
         static_cast<double>(writer.file_bytes()) / 0x1p30, static_cast<double>(space.available) / 0x1p30);
  }
  writer.write(path);
  return std::filesystem::file_size(path);
}

}  // namespace dgemma
