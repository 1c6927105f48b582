// Reads GGUF checkpoints, versions 2 and 3, little-endian: one file, or all parts of a split one. Stricter than
// llama.cpp's reader, since these files come from strangers; knows no model and no key's meaning but the container's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "format/checkpoint.h"

namespace dgemma {

// Ids as in the file.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// A metadata value where it lies in the file. The views are valid while the file stays mapped.
struct GgufValue {
  std::string_view key;
  GgufType type = GgufType::u8;  // of an array: the type of its elements
  bool is_array = false;
  std::uint64_t count = 1;
  std::span<const std::byte> bytes;  // count elements in file order; every string after its u64 length
  std::size_t offset = 0;            // of bytes, in the file
};

// What one file holds.
struct GgufContents {
  std::vector<GgufValue> values;
  std::vector<TensorInfo> tensors;  // in file order
};

// Parses a whole file held in memory; `place` is what messages call it. Throws bad_input that names the key or tensor
// and the byte, and unsupported for a tensor type that is retired, unknown or not built. Allocates in proportion to
// the bytes given, never to a count that they claim.
GgufContents parse_gguf(std::span<const std::byte> bytes, const std::string& place);

class GgufFile : public Checkpoint {
 public:
  // A file named <prefix>-00001-of-000NN.gguf brings in the other parts, whose names follow from its own.
  static GgufFile open(const std::filesystem::path& path);
  // As open, on memory that the caller keeps.
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& place);

  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override;

  // All metadata of the (first) file, in file order.
  std::span<const GgufValue> values() const { return values_; }
  // The value of that key, or null.
  const GgufValue* value(std::string_view key) const;

  // Typed getters: nothing when the key is absent, bad_input when its value has another kind. Converters differ, so
  // every integer width is an integer, every integer or float a number, and 0 and 1 are booleans.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  // A single value reads as a list of one: head_count_kv and the like occur in both forms.
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
  std::optional<std::vector<bool>> booleans(std::string_view key) const;
  // Views into the file; nothing is copied.
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;

 private:
  GgufFile() = default;
  void add(std::span<const std::byte> bytes, const std::string& place);
  const GgufValue* scalar(std::string_view key) const;

  std::vector<MappedFile> files_;
  std::vector<GgufValue> values_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> tensor_index_;
  std::unordered_map<std::string_view, std::size_t> value_index_;
  std::string place_;
};

}  // namespace dgemma
