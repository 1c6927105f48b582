// A file that appears whole or not at all: written under a temporary name beside its own, then renamed. And a tensor on
// its way into such a file. Knows no container format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace dgemma {

class AtomicFile {
 public:
  // Throws resource when the temporary file cannot be created, as all of these do when the disk refuses.
  explicit AtomicFile(const std::filesystem::path& path);
  // Without commit() the temporary file is removed and what was there before stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Zeros up to a multiple of `alignment`.
  void pad(std::uint64_t alignment);
  std::uint64_t size_bytes() const { return size_bytes_; }
  // Flushes to the disk and takes the final name.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::uint64_t size_bytes_ = 0;
};

struct TensorSource {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // outermost first
  // Called once, when the tensor's turn comes; the bytes must last until the next call of any source.
  std::function<std::span<const std::byte>()> bytes;
};

// Bytes of a tensor; throws bad_input when a dimension is not positive, a row is no multiple of its block, or the size
// does not fit 63 bits.
std::uint64_t size_bytes(const TensorSource& tensor);

// Writes the tensor's bytes; throws internal when the source gives another number than its shape needs.
void write_tensor(AtomicFile& file, const TensorSource& tensor);

}  // namespace dgemma
