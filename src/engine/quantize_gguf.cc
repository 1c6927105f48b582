#include "engine/quantize_gguf.h"

#include <array>

#include "base/error.h"

namespace dgemma {

WrittenTypes quantize_gguf(const std::filesystem::path& source, const GgufOutput& output) {
  if (std::filesystem::is_directory(source)) {
    bad_input("{}: a directory; dgemma convert makes a GGUF file of it, and takes --type as well", source.string());
  }
  check_output(output, std::array{source});
  const GgufFile file = GgufFile::open(source);
  GgufWriter writer;
  for (const GgufValue& value : file.values()) {
    const bool replaced = value.key == "general.file_type" || value.key == "general.quantization_version";
    if (!replaced && !value.key.starts_with("split.")) writer.add(value);
  }
  return write_weights(writer, file.tensors(), output);
}

}  // namespace dgemma
