#include "format/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"

namespace dgemma {

void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  // Larger elements first: every tensor then begins at a multiple of its element, as the format's own library does it.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return block_shape(tensors[a].dtype).bytes > block_shape(tensors[b].dtype).bytes;
  });
  std::uint64_t offset = 0;
  for (const std::size_t i : order) {
    const TensorSource& tensor = tensors[i];
    if (block_shape(tensor.dtype).elements != 1) {
      fail(ErrorKind::unsupported, "tensor {}: safetensors cannot hold {}; write GGUF", tensor.name,
           dtype_name(tensor.dtype));
    }
    if (header.contains(tensor.name)) bad_input("tensor {} occurs twice", tensor.name);
    const std::uint64_t end = offset + size_bytes(tensor);
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = text.size();

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(text);
  for (const std::size_t i : order) write_tensor(file, tensors[i]);
  file.commit();
}

}  // namespace dgemma
