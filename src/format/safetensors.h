// Reads safetensors checkpoints: one file, or a directory with model.safetensors or model.safetensors.index.json and
// its shards.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "format/checkpoint.h"

namespace dgemma {

// Parses a whole safetensors file held in memory. Throws bad_input that names the tensor at fault: the header is cut
// short, not JSON, larger than 100 MB; a tensor's dtype is unknown, its range outside the data, of the wrong length for
// its shape, or overlapping; the
// tensors leave a hole or bytes behind them. `place` is what error messages call the file.
std::vector<TensorInfo> parse_safetensors(std::span<const std::byte> bytes, const std::string& place);

class SafetensorsFile : public Checkpoint {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);
  // `path` holds model.safetensors, or an index and the shards that it names.
  static SafetensorsFile open_directory(const std::filesystem::path& path);

  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override;

 private:
  SafetensorsFile() = default;
  void add(const std::filesystem::path& path);

  std::vector<MappedFile> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace dgemma
