// Builds GGUF bytes in memory, right or wrong on purpose: nothing is checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dgemma {

class GgufBuilder {
 public:
  template <typename T>
  GgufBuilder& put(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
    return *this;
  }
  GgufBuilder& raw(std::string_view text) {
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
    return *this;
  }
  GgufBuilder& string(std::string_view text) { return put(std::uint64_t{text.size()}).raw(text); }
  GgufBuilder& header(std::uint32_t version, std::uint64_t tensors, std::uint64_t keys) {
    return raw("GGUF").put(version).put(tensors).put(keys);
  }
  // A key and the id of its value's type; the value follows by put().
  GgufBuilder& key(std::string_view name, std::uint32_t type) { return string(name).put(type); }
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& extents, std::uint32_t type,
                      std::uint64_t offset) {
    string(name).put(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) put(extent);
    return put(type).put(offset);
  }
  // Pads to `alignment`, then `count` bytes of data.
  GgufBuilder& data(std::size_t count, std::size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + count);
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace dgemma
