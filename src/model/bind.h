// Names to parameters: one line a weight, all problems in one error. The only place that knows tensor names.
#pragma once

#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "model/config.h"
#include "model/weights.h"

namespace dgemma {

enum class Naming { hugging_face, gguf };

// One tensor's name in each convention.
struct TensorName {
  std::string hugging_face, gguf;
};

// Views into `checkpoint`, which must outlive the weights. Also sets config.embedding_scale to the value rounded to
// bf16, as the reference computes it for every checkpoint but a float32 one (spec 2.2). Throws bad_input that lists
// every missing tensor and every wrong shape or type. `used`, where given, receives the tensors that the weights come
// from: a converter's list of names.
Weights bind(const Checkpoint& checkpoint, Naming naming, ModelConfig& config, std::vector<TensorName>* used = nullptr);

}  // namespace dgemma
