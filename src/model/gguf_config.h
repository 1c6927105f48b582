// Reads a GGUF file's metadata into a ModelConfig (key names: docs/formats.md).
#pragma once

#include "format/gguf.h"
#include "model/config.h"

namespace dgemma {

// Architectures diffusion-gemma, gemma4 (mixture of experts, text) and gemma3. Throws bad_input naming the key, or
// unsupported for another architecture or a feature that no model of the family has here.
ModelConfig config_from_gguf(const GgufFile& file);

}  // namespace dgemma
