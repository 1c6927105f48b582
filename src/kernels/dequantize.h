// Unpacks ggml block formats to f32. Block layouts: docs/formats.md; ids: ggml's type table.
#pragma once

#include <cstdint>

namespace dgemma {

// Unpacks `elements` values (a multiple of the format's block) from `blocks`, which needs no alignment.
using DequantizeFunction = void (*)(const void* blocks, float* out, std::int64_t elements);

// The function for a ggml type id, or null when the format holds no weights or is unknown.
DequantizeFunction dequantize_for(std::uint32_t ggml_type);

}  // namespace dgemma
