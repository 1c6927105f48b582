#include "format/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace dgemma {

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), temporary_(path.string() + ".partial." + std::to_string(::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    fail(ErrorKind::resource, "{}: cannot be created: {}", temporary_.string(), std::strerror(errno));
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      fail(ErrorKind::resource, "{}: writing {} bytes at {} failed: {}", temporary_.string(), bytes.size(), size_bytes_,
           std::strerror(errno));
    }
    size_bytes_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::pad(std::uint64_t alignment) {
  const std::vector<std::byte> zeros((alignment - size_bytes_ % alignment) % alignment);
  write(std::span<const std::byte>(zeros));
}

void AtomicFile::commit() {
  const bool flushed = ::fsync(descriptor_) == 0;
  const bool closed = ::close(descriptor_) == 0;
  descriptor_ = -1;
  if (!flushed || !closed) {
    fail(ErrorKind::resource, "{}: flushing failed: {}", temporary_.string(), std::strerror(errno));
  }
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) fail(ErrorKind::resource, "{}: cannot take its name: {}", path_.string(), error.message());
  temporary_.clear();
}

std::uint64_t size_bytes(const TensorSource& tensor) {
  const BlockShape block = block_shape(tensor.dtype);
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % block.elements != 0) {
    bad_input("tensor {}: rows of {} are no multiple of the {} elements in a {} block", tensor.name, row,
              block.elements, dtype_name(tensor.dtype));
  }
  std::int64_t size = block.bytes;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const std::int64_t extent = tensor.shape[i];
    if (extent <= 0) bad_input("tensor {}: dimension {} is {}, expected a positive number", tensor.name, i, extent);
    const std::int64_t factor = i + 1 == tensor.shape.size() ? extent / block.elements : extent;
    if (__builtin_mul_overflow(size, factor, &size)) bad_input("tensor {}: its size overflows", tensor.name);
  }
  return static_cast<std::uint64_t>(size);
}

void write_tensor(AtomicFile& file, const TensorSource& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  DGEMMA_CHECK(bytes.size() == size_bytes(tensor));
  file.write(bytes);
}

}  // namespace dgemma
