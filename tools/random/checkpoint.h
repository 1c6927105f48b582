// A GGUF checkpoint of random weights in the shapes of a model and the types of a published mix. For measurements: its
// time and memory are those of a real file, its output means nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/weight_types.h"
#include "format/gguf_writer.h"
#include "model/config.h"

namespace dgemma {

struct RandomCheckpoint {
  ModelConfig config;  // canvas_length 0: an autoregressive gemma4 file, else diffusion-gemma
  WeightMix mix = WeightMix::q4_k_m;
  std::uint64_t seed = 0;
};

// Names, shapes and types in file order; no bytes. Throws unsupported for a mix other than q4_k_m, q8_0, q4_0 and bf16.
std::vector<TensorInfo> random_tensors(const RandomCheckpoint& checkpoint);

struct RandomProgress {
  std::size_t tensor, tensors;  // counts from 0
  std::string name;
  std::uint64_t bytes_done, bytes_total;
};

// Writes the checkpoint with a made-up vocabulary. The same checkpoint gives the same bytes with any number of threads.
// One tensor at a time is in memory. `progress` is called before each; what it throws ends the work, and then no file
// appears. Throws resource, before a byte is written, when the disk has not room enough. Returns the file's size.
//
// The values are chosen so that activations look like those of a trained model on text:
// - Embedding rows share 32 columns of a fixed pattern that no layer changes (trained models have such columns too).
// The
//   router reads them as a preference for some experts, so that the 256 rows of a canvas choose about 84 of 128.
// - Each layer adds its share to the residual stream, whose root mean square grows from 1 to 12.5, so that the head
// sees
//   little of a row's own token: mean entropies fall from 6 to 2 nats with the sampler's temperature over 48 steps, and
//   are neither 0 nor ln 262144. Denoising does not converge, so that all steps are run.
// - Queries and keys give scores of a few units.
std::uint64_t write_random_checkpoint(const RandomCheckpoint& checkpoint, const std::filesystem::path& path,
                                      int threads, const std::function<void(const RandomProgress&)>& progress);

// Bytes of that file.
std::uint64_t random_checkpoint_bytes(const RandomCheckpoint& checkpoint);

}  // namespace dgemma
