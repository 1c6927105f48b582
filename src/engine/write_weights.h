// Writes a GGUF file whose tensors are put into their new types on the way: one tensor in memory at a time, many
// threads on it. Knows no model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "engine/weight_types.h"
#include "format/gguf_writer.h"

namespace dgemma {

// The tensor whose turn it is.
struct WriteProgress {
  std::size_t tensor, tensors;  // counts from 0
  std::string_view name;
  DType from, to;
  std::uint64_t bytes_done, bytes_total;  // of the output's data
};

struct GgufOutput {
  std::filesystem::path path;
  bool overwrite = false;
  WeightMix mix = WeightMix::as_stored;
  // From one block type to another: the errors of both add up, so it must be asked for.
  bool requantize = false;
  int threads = 1;
  // Called before each tensor. What it throws ends the work; then no file appears.
  std::function<void(const WriteProgress&)> progress;
};

struct WrittenTypes {
  std::uint64_t file_bytes = 0;
  struct Total {
    std::int64_t tensors = 0;
    std::uint64_t bytes = 0;
  };
  std::map<DType, Total> types;
};

// Throws bad_input when the output exists and may not be overwritten, or is one of `sources`.
void check_output(const GgufOutput& output, std::span<const std::filesystem::path> sources);

// Adds general.quantization_version, general.file_type and the tensors (GGUF names, stored types; their bytes must
// stay) to the metadata in `writer`, and writes the file. Before a byte is written, throws bad_input for block types
// that may not be quantised again, unsupported for a type that cannot be decoded, resource when the disk has not room
// enough; on the way, bad_input for a value that is not finite or that the new type cannot hold, naming the tensor.
WrittenTypes write_weights(GgufWriter& writer, std::span<const TensorInfo> tensors, const GgufOutput& output);

}  // namespace dgemma
