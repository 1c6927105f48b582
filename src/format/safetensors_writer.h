// Writes one safetensors file.
#pragma once

#include <map>

#include "format/atomic_file.h"

namespace dgemma {

// Writes the tensors one after the other, so that only one need be in memory; the file appears when it is whole. Throws
// bad_input for a name that occurs twice, unsupported for a block format, which safetensors cannot hold.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace dgemma
