// GGUF to GGUF with other weight types. Knows the container's keys, no model.
#pragma once

#include "engine/write_weights.h"

namespace dgemma {

// `source`: a .gguf file, or the first of its parts. The metadata stays as it is but for general.file_type,
// general.quantization_version and the split.* keys: the output is one file. Throws what the reader, check_output and
// write_weights throw.
WrittenTypes quantize_gguf(const std::filesystem::path& source, const GgufOutput& output);

}  // namespace dgemma
