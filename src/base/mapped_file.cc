#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace dgemma {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) bad_input("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    bad_input("{}: expected a regular file", path.string());
  }
  if (status.st_size == 0) {
    ::close(descriptor);
    bad_input("{}: the file is empty; was the download cut short?", path.string());
  }
  size_ = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int map_error = errno;
  ::close(descriptor);
  if (address == MAP_FAILED) {
    fail(ErrorKind::resource, "{}: cannot map {} bytes: {}", path.string(), size_, std::strerror(map_error));
  }
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace dgemma
