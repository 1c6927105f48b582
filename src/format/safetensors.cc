#include "format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace dgemma {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::uint64_t kMaxIndexBytes = 64'000'000;
constexpr int kMaxDepth = 8;

// JSON of bounded depth; a key that occurs twice in one object is an error, since readers disagree on which one counts.
Json parse_json(const char* begin, const char* end, const std::string& place) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) bad_input("{}: JSON nested deeper than {} levels", place, kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      bad_input("{}: \"{}\" occurs twice", place, value.get<std::string>());
    }
    return true;
  };
  try {
    return Json::parse(begin, end, watch);
  } catch (const Json::exception& error) {
    bad_input("{}: the header is not valid JSON: {}", place, error.what());
  }
}

DType dtype_of(const std::string& name, const std::string& tensor, const std::string& place) {
  static const std::unordered_map<std::string, DType> known{
      {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"F64", DType::f64},
      {"I8", DType::i8},   {"I16", DType::i16}, {"I32", DType::i32},   {"I64", DType::i64}};
  const auto found = known.find(name);
  if (found == known.end()) {
    fail(ErrorKind::unsupported, "{}: tensor {} has dtype {}, which dgemma does not read", place, tensor, name);
  }
  return found->second;
}

std::uint64_t unsigned_number(const Json& value, const std::string& tensor, const char* what,
                              const std::string& place) {
  if (!value.is_number_unsigned()) bad_input("{}: tensor {}: {} must be a non-negative integer", place, tensor, what);
  return value.get<std::uint64_t>();
}

TensorInfo parse_tensor(const std::string& name, const Json& entry, std::span<const std::byte> data,
                        const std::string& place) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry["shape"].is_array() || !entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2) {
    bad_input("{}: tensor {}: expected dtype, shape and two data_offsets", place, name);
  }
  TensorInfo tensor;
  tensor.name = name;
  tensor.dtype = dtype_of(entry["dtype"].get<std::string>(), name, place);
  if (entry["shape"].size() > 8) bad_input("{}: tensor {}: more than 8 dimensions", place, name);
  std::uint64_t size = static_cast<std::uint64_t>(block_shape(tensor.dtype).bytes);
  for (const Json& dimension : entry["shape"]) {
    const std::uint64_t extent = unsigned_number(dimension, name, "a dimension", place);
    if (extent == 0) bad_input("{}: tensor {}: a dimension is 0", place, name);
    // The product never exceeds the data, which the division keeps free of overflow.
    if (extent > data.size() / size) bad_input("{}: tensor {}: its shape needs more than the file holds", place, name);
    size *= extent;
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const std::uint64_t begin = unsigned_number(entry["data_offsets"][0], name, "an offset", place);
  const std::uint64_t end = unsigned_number(entry["data_offsets"][1], name, "an offset", place);
  if (begin > end || end > data.size()) {
    bad_input("{}: tensor {}: bytes {} to {} lie outside the data ({} bytes); is the file cut short?", place, name,
              begin, end, data.size());
  }
  if (end - begin != size) {
    bad_input("{}: tensor {}: its shape needs {} bytes, its offsets give {}", place, name, size, end - begin);
  }
  tensor.bytes = data.subspan(begin, size);
  return tensor;
}

}  // namespace

std::vector<TensorInfo> parse_safetensors(std::span<const std::byte> bytes, const std::string& place) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes) bad_input("{}: {} bytes are too few for safetensors", place, bytes.size());
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - sizeof header_bytes) {
    bad_input("{}: the header claims {} bytes, the file has {}; not safetensors, or cut short", place, header_bytes,
              bytes.size());
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes;
  const Json header = parse_json(text, text + header_bytes, place);
  if (!header.is_object()) bad_input("{}: the header must be a JSON object", place);
  const std::span<const std::byte> data = bytes.subspan(sizeof header_bytes + header_bytes);

  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") tensors.push_back(parse_tensor(name, entry, data, place));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.bytes.data() < b.bytes.data(); });
  // Every byte of the data belongs to exactly one tensor, as the format demands: no overlap, no hole, nothing behind.
  std::size_t covered = 0;
  for (const TensorInfo& tensor : tensors) {
    const auto begin = static_cast<std::size_t>(tensor.bytes.data() - data.data());
    if (begin != covered) {
      bad_input("{}: tensor {} begins at byte {} of the data, expected {}: tensors overlap or leave a hole", place,
                tensor.name, begin, covered);
    }
    covered += tensor.bytes.size();
  }
  if (covered != data.size()) {
    bad_input("{}: the tensors end at byte {} of the data, which has {}", place, covered, data.size());
  }
  return tensors;
}

void SafetensorsFile::add(const std::filesystem::path& path) {
  files_.emplace_back(path);
  for (TensorInfo& tensor : parse_safetensors(files_.back().bytes(), path.string())) {
    if (!by_name_.emplace(tensor.name, tensors_.size()).second) {
      bad_input("{}: tensor {} is in another shard too", path.string(), tensor.name);
    }
    tensors_.push_back(std::move(tensor));
  }
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile out;
  out.add(path);
  return out;
}

SafetensorsFile SafetensorsFile::open_directory(const std::filesystem::path& path) {
  const std::filesystem::path index = path / "model.safetensors.index.json";
  if (!std::filesystem::exists(index)) return open(path / "model.safetensors");
  const MappedFile file(index);
  if (file.bytes().size() > kMaxIndexBytes) bad_input("{}: larger than {} bytes", index.string(), kMaxIndexBytes);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const Json document = parse_json(text, text + file.bytes().size(), index.string());
  if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object()) {
    bad_input("{}: expected an object with a weight_map", index.string());
  }
  std::set<std::string> shards;
  for (const auto& [name, shard] : document["weight_map"].items()) {
    if (!shard.is_string()) bad_input("{}: {}: the shard's name must be a string", index.string(), name);
    const std::filesystem::path shard_name = shard.get<std::string>();
    if (shard_name.filename() != shard_name || shard_name.extension() != ".safetensors") {
      bad_input("{}: {}: \"{}\" is not the name of a .safetensors file in this directory", index.string(), name,
                shard_name.string());
    }
    shards.insert(shard_name.string());
  }
  SafetensorsFile out;
  for (const std::string& shard : shards) out.add(path / shard);
  for (const auto& [name, shard] : document["weight_map"].items()) {
    if (out.find(name) == nullptr) bad_input("{}: {} is not in {}", index.string(), name, shard.get<std::string>());
  }
  return out;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace dgemma
