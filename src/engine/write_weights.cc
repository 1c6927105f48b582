#include "engine/write_weights.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/dequantize.h"
#include "kernels/quantize.h"
#include "parallel/thread_pool.h"

namespace dgemma {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;  // of ggml's block formats
constexpr std::int64_t kUnit = 8192;               // elements; a multiple of every block
constexpr std::int64_t kUnitsInChunk = 4;
constexpr float kLargestHalf = 65504.0f;

bool is_block(DType type) { return block_shape(type).elements > 1; }

std::int64_t elements_of(const TensorInfo& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.shape) count *= extent;
  return count;
}

// Re-encodes one tensor after the other into the same buffer.
class Encoder {
 public:
  explicit Encoder(int threads) : pool_(threads), scratch_(static_cast<std::size_t>(threads)) {
    for (std::vector<float>& unit : scratch_) unit.resize(kUnit);
  }

  // Valid until the next call.
  std::span<const std::byte> encode(const TensorInfo& tensor, DType to) {
    if (tensor.dtype == to) return tensor.bytes;
    const std::int64_t elements = elements_of(tensor), units = (elements + kUnit - 1) / kUnit;
    const auto size = static_cast<std::size_t>(row_bytes(to, elements));
    if (buffer_.size() < size) buffer_.resize(size);
    const DequantizeFunction decode = dequantize_for(static_cast<std::uint32_t>(tensor.dtype));
    const QuantizeFunction encode = to == DType::f32 ? nullptr : quantize_for(static_cast<std::uint32_t>(to));
    DGEMMA_CHECK(decode != nullptr && (encode != nullptr || to == DType::f32));
    const bool wide = to == DType::f32 || to == DType::bf16;
    const float limit = wide ? std::numeric_limits<float>::max() : kLargestHalf;
    std::atomic<std::int64_t> bad{elements};  // the first element that does not fit
    pool_.parallel_for(units, kUnitsInChunk, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t first = unit * kUnit, count = std::min(kUnit, elements - first);
        std::byte* out = buffer_.data() + row_bytes(to, first);
        float* values = encode == nullptr ? reinterpret_cast<float*>(out) : scratch_[thread].data();
        decode(tensor.bytes.data() + row_bytes(tensor.dtype, first), values, count);
        for (std::int64_t i = 0; i < count; ++i) {
          if (std::abs(values[i]) <= limit) continue;
          std::int64_t known = bad.load();
          while (first + i < known && !bad.compare_exchange_weak(known, first + i)) continue;
          break;
        }
        if (encode != nullptr) encode(values, out, count);
      }
    });
    if (bad < elements) {
      bad_input("tensor {}: element {} is not finite or too large for {}; is the source damaged?", tensor.name,
                bad.load(), dtype_name(to));
    }
    return {buffer_.data(), size};
  }

 private:
  ThreadPool pool_;
  std::vector<std::vector<float>> scratch_;  // by thread: [kUnit]
  std::vector<std::byte> buffer_;
};

void check_types(const TensorInfo& tensor, DType to, bool requantize) {
  if (tensor.dtype == to) return;
  if (tensor.dtype == DType::nvfp4) {
    fail(ErrorKind::unsupported, "tensor {}: NVFP4 has a factor in another tensor and cannot be put into {}",
         tensor.name, dtype_name(to));
  }
  if (is_block(tensor.dtype) && is_block(to) && !requantize) {
    bad_input(
        "tensor {} is {} already; putting it into {} adds a second rounding. Start from a BF16, F16 or F32 file, or "
        "allow it with --requantize",
        tensor.name, dtype_name(tensor.dtype), dtype_name(to));
  }
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

void check_output(const GgufOutput& output, std::span<const std::filesystem::path> sources) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(folder_of(output.path), error)) {
    bad_input("{}: there is no folder {}", output.path.string(), folder_of(output.path).string());
  }
  if (!fs::exists(output.path, error)) return;
  if (!fs::is_regular_file(output.path, error)) bad_input("{}: not a file", output.path.string());
  for (const fs::path& source : sources) {
    if (fs::equivalent(source, output.path, error)) {
      bad_input("{}: would replace its own source; choose another name", output.path.string());
    }
  }
  if (!output.overwrite)
    bad_input("{}: exists; choose another name, or overwrite it with --force", output.path.string());
}

WrittenTypes write_weights(GgufWriter& writer, std::span<const TensorInfo> tensors, const GgufOutput& output) {
  const std::vector<DType> types = weight_types(output.mix, tensors);
  writer.add_u32("general.quantization_version", kQuantizationVersion);
  writer.add_u32("general.file_type", file_type(output.mix, tensors));

  WrittenTypes written;
  std::uint64_t total = 0, done = 0;
  Encoder encoder(output.threads);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    const DType to = types[i];
    check_types(tensor, to, output.requantize);
    TensorSource source{tensor.name, to, tensor.shape, {}};
    const std::uint64_t size = size_bytes(source);
    source.bytes = [&, i, size] {
      if (output.progress)
        output.progress({i, tensors.size(), tensors[i].name, tensors[i].dtype, types[i], done, total});
      done += size;
      return encoder.encode(tensors[i], types[i]);
    };
    total += size;
    ++written.types[to].tensors;
    written.types[to].bytes += size;
    writer.add_tensor(std::move(source));
  }
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder_of(output.path), error);
  if (const std::uint64_t needed = writer.file_bytes(); !error && space.available < needed) {
    fail(ErrorKind::resource, "{}: needs {} bytes, the disk has {} left", output.path.string(), needed,
         space.available);
  }
  writer.write(output.path);
  written.file_bytes = std::filesystem::file_size(output.path);
  return written;
}

}  // namespace dgemma
