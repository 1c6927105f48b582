// Writes one GGUF file, version 3, little-endian.
#pragma once

#include <unordered_set>

#include "format/atomic_file.h"
#include "format/gguf.h"

namespace dgemma {

// Collects metadata and tensors, then writes them in the order of their addition. A key or tensor that is added twice,
// or whose name the reader would refuse, is bad_input.
class GgufWriter {
 public:
  void add_u32(std::string_view key, std::uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_boolean(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_i32s(std::string_view key, std::span<const std::int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  void add_booleans(std::string_view key, const std::vector<bool>& values);
  void add_strings(std::string_view key, std::span<const std::string> values);
  // A value of another file as it stands there.
  void add(const GgufValue& value);
  // 1 to 4 dimensions.
  void add_tensor(TensorSource tensor);

  // Bytes of the file that write() makes.
  std::uint64_t file_bytes() const;
  // The file appears when it is whole; only one tensor need be in memory at a time.
  void write(const std::filesystem::path& path) const;

 private:
  void begin(std::string_view key, GgufType type, bool is_array, std::uint64_t count);
  // All that comes before the padding in front of the tensors' bytes.
  std::string header() const;
  std::uint64_t aligned(std::uint64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

  std::string keys_;  // the records, as they go into the file
  std::uint64_t key_count_ = 0;
  std::uint64_t alignment_ = 32;
  std::unordered_set<std::string> key_names_;
  std::unordered_set<std::string> tensor_names_;
  std::vector<TensorSource> tensors_;
};

}  // namespace dgemma
