// DiffusionGemma 26B-A4B with random weights: exact layer shapes, any number of layers, stored in the format asked for.
// For benchmarks: its time is that of a checkpoint, its output means nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/config.h"
#include "model/weights.h"

namespace dgemma::bench {

class RandomModel {
 public:
  // `type`: f32, bf16, q8_0 or q4_k; bad_input otherwise. q4_k is the published Q4_K_M mix with one choice where the
  // mix varies by layer: Q4_K, values Q4_K, down projections Q5_0 (their rows are no multiple of 256), embedding Q6_K.
  // The router is f32 in all but bf16. Throws `resource` when the weights do not fit `max_bytes`.
  RandomModel(std::int64_t layers, std::string_view type, std::int64_t max_bytes);

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  std::int64_t size_bytes() const { return size_bytes_; }

 private:
  struct Formats {
    DType matrix, down, embedding, router;
  };

  static Formats formats(std::string_view type);
  // A matrix of its own memory, filled with the same few rows again and again.
  WeightView matrix(DType dtype, std::int64_t rows, std::int64_t cols);
  GatedMlp mlp(const Formats& formats);

  ModelConfig config_;
  Weights weights_;
  std::int64_t size_bytes_ = 0, max_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
  std::map<std::pair<DType, std::int64_t>, std::vector<std::byte>> tiles_;  // by format and columns
};

}  // namespace dgemma::bench
