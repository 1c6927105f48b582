#include "format/gguf_writer.h"

#include <cstring>

#include "base/error.h"
#include "base/utf8.h"

namespace dgemma {
namespace {

constexpr std::size_t kMaxKeyBytes = 65535;
constexpr std::size_t kMaxNameBytes = 63;
constexpr std::string_view kAlignmentKey = "general.alignment";

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out.append(text);
}

// What the reader demands of keys and tensor names.
void check_name(const char* what, std::string_view name, std::size_t limit) {
  if (name.empty() || name.size() > limit) bad_input("a {} of {} bytes, expected 1 to {}", what, name.size(), limit);
  if (name.find('\0') != std::string_view::npos || invalid_utf8(name) < name.size()) {
    bad_input("a {} that is not UTF-8 text without NUL", what);
  }
}

}  // namespace

void GgufWriter::begin(std::string_view key, GgufType type, bool is_array, std::uint64_t count) {
  check_name("key", key, kMaxKeyBytes);
  if (!key_names_.emplace(key).second) bad_input("key {} is added twice", key);
  put_string(keys_, key);
  if (is_array) put(keys_, GgufType::array);
  put(keys_, type);
  if (is_array) put(keys_, count);
  ++key_count_;
}

void GgufWriter::add_u32(std::string_view key, std::uint32_t value) {
  if (key == kAlignmentKey) {
    if (value == 0 || value > 65536 || (value & (value - 1)) != 0) {
      bad_input("{} is {}, expected a power of two up to 65536", key, value);
    }
    alignment_ = value;
  }
  begin(key, GgufType::u32, false, 1);
  put(keys_, value);
}

void GgufWriter::add_f32(std::string_view key, float value) {
  begin(key, GgufType::f32, false, 1);
  put(keys_, value);
}

void GgufWriter::add_boolean(std::string_view key, bool value) {
  begin(key, GgufType::boolean, false, 1);
  put(keys_, static_cast<std::uint8_t>(value));
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  begin(key, GgufType::string, false, 1);
  put_string(keys_, value);
}

void GgufWriter::add_i32s(std::string_view key, std::span<const std::int32_t> values) {
  begin(key, GgufType::i32, true, values.size());
  for (const std::int32_t value : values) put(keys_, value);
}

void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  begin(key, GgufType::f32, true, values.size());
  for (const float value : values) put(keys_, value);
}

void GgufWriter::add_booleans(std::string_view key, const std::vector<bool>& values) {
  begin(key, GgufType::boolean, true, values.size());
  for (const bool value : values) put(keys_, static_cast<std::uint8_t>(value));
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  begin(key, GgufType::string, true, values.size());
  for (const std::string& value : values) put_string(keys_, value);
}

void GgufWriter::add(const GgufValue& value) {
  if (value.key == kAlignmentKey && !value.is_array && value.type == GgufType::u32) {
    std::uint32_t alignment = 0;
    std::memcpy(&alignment, value.bytes.data(), sizeof alignment);
    add_u32(value.key, alignment);
    return;
  }
  begin(value.key, value.type, value.is_array, value.count);
  keys_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufWriter::add_tensor(TensorSource tensor) {
  check_name("tensor name", tensor.name, kMaxNameBytes);
  if (tensor.shape.empty() || tensor.shape.size() > 4) {
    bad_input("tensor {} has {} dimensions, expected 1 to 4", tensor.name, tensor.shape.size());
  }
  (void)size_bytes(tensor);  // refuses what cannot be stored
  if (!tensor_names_.insert(tensor.name).second) bad_input("tensor {} is added twice", tensor.name);
  tensors_.push_back(std::move(tensor));
}

std::string GgufWriter::header() const {
  std::string header = "GGUF";
  put(header, std::uint32_t{3});
  put(header, std::uint64_t{tensors_.size()});
  put(header, key_count_);
  header += keys_;
  std::uint64_t offset = 0;
  for (const TensorSource& tensor : tensors_) {
    put_string(header, tensor.name);
    put(header, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) put(header, *extent);
    put(header, tensor.dtype);
    put(header, offset);
    offset += aligned(size_bytes(tensor));
  }
  return header;
}

std::uint64_t GgufWriter::file_bytes() const {
  std::uint64_t total = aligned(header().size());
  for (const TensorSource& tensor : tensors_) total += aligned(size_bytes(tensor));
  return total;
}

void GgufWriter::write(const std::filesystem::path& path) const {
  AtomicFile file(path);
  file.write(header());
  file.pad(alignment_);
  for (const TensorSource& tensor : tensors_) {
    write_tensor(file, tensor);
    file.pad(alignment_);
  }
  file.commit();
}

}  // namespace dgemma
