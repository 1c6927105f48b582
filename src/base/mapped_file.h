// A whole file as read-only bytes, mapped into memory. Knows nothing of what the bytes mean.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace dgemma {

class MappedFile {
 public:
  // Throws bad_input when the file cannot be opened, is a directory or is empty.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dgemma
