// Reads recorded tensors (tests/golden/README.md).
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/checkpoint.h"

namespace dgemma {

inline const std::string kGolden = std::string(DGEMMA_SOURCE_DIR) + "/tests/golden/";

// Throws when the file cannot be read: a test without its golden must fail.
inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename T>
std::vector<T> golden_values(const Checkpoint& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error("no golden tensor " + name);
  std::vector<T> out(tensor->bytes.size() / sizeof(T));
  std::memcpy(out.data(), tensor->bytes.data(), tensor->bytes.size());
  return out;
}

}  // namespace dgemma
