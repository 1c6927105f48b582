// GgufFile: the parts of a split file, and typed access to metadata. The parser is gguf.cc.
#include <cstring>

#include "base/error.h"
#include "format/gguf.h"

namespace dgemma {
namespace {

template <typename T>
T load(const std::byte* from) {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

// Element `i` as an integer, or nothing: another type, or a u64 beyond the range of i64.
std::optional<std::int64_t> integer_at(const GgufValue& value, std::uint64_t i) {
  const std::byte* data = value.bytes.data();
  switch (value.type) {
    case GgufType::u8:
      return load<std::uint8_t>(data + i);
    case GgufType::i8:
      return load<std::int8_t>(data + i);
    case GgufType::u16:
      return load<std::uint16_t>(data + 2 * i);
    case GgufType::i16:
      return load<std::int16_t>(data + 2 * i);
    case GgufType::u32:
      return load<std::uint32_t>(data + 4 * i);
    case GgufType::i32:
      return load<std::int32_t>(data + 4 * i);
    case GgufType::i64:
      return load<std::int64_t>(data + 8 * i);
    case GgufType::u64: {
      const auto out = load<std::uint64_t>(data + 8 * i);
      if (out >> 63 == 0) return static_cast<std::int64_t>(out);
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(const GgufValue& value, std::uint64_t i) {
  if (value.type == GgufType::f32) return load<float>(value.bytes.data() + 4 * i);
  if (value.type == GgufType::f64) return load<double>(value.bytes.data() + 8 * i);
  if (value.type == GgufType::u64) return static_cast<double>(load<std::uint64_t>(value.bytes.data() + 8 * i));
  const auto integer = integer_at(value, i);
  if (!integer) return std::nullopt;
  return static_cast<double>(*integer);
}

std::optional<bool> boolean_at(const GgufValue& value, std::uint64_t i) {
  if (value.type == GgufType::boolean) return load<std::uint8_t>(value.bytes.data() + i) != 0;
  const auto integer = integer_at(value, i);
  if (!integer || (*integer != 0 && *integer != 1)) return std::nullopt;
  return *integer == 1;
}

[[noreturn]] void wrong_kind(const std::string& place, const GgufValue& value, const char* expected) {
  bad_input("{}: key {}: the value at byte {} ({}type {}) is not {}", place, value.key, value.offset,
            value.is_array ? "array of " : "", static_cast<std::uint32_t>(value.type), expected);
}

// Every element through `at`, which answers nothing for the wrong kind.
template <typename T, typename At>
std::vector<T> list_of(const std::string& place, const GgufValue& value, const char* expected, At at) {
  std::vector<T> out;
  out.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    const auto element = at(value, i);
    if (!element) wrong_kind(place, value, expected);
    out.push_back(*element);
  }
  return out;
}

// "<prefix>-00001-of-00003.gguf" -> {prefix, 1, 3}
struct PartName {
  std::string prefix;
  int part = 0;
  int parts = 0;
};

std::optional<PartName> part_name(const std::string& file_name) {
  constexpr std::string_view kPattern = "-ddddd-of-ddddd.gguf";  // d: a digit
  if (file_name.size() < kPattern.size()) return std::nullopt;
  const std::string tail = file_name.substr(file_name.size() - kPattern.size());
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    const bool matches = kPattern[i] == 'd' ? tail[i] >= '0' && tail[i] <= '9' : tail[i] == kPattern[i];
    if (!matches) return std::nullopt;
  }
  return PartName{file_name.substr(0, file_name.size() - kPattern.size()), std::stoi(tail.substr(1, 5)),
                  std::stoi(tail.substr(10, 5))};
}

}  // namespace

void GgufFile::add(std::span<const std::byte> bytes, const std::string& place) {
  GgufContents contents = parse_gguf(bytes, place);
  if (place_.empty()) {
    place_ = place;
    values_ = std::move(contents.values);
    for (std::size_t i = 0; i < values_.size(); ++i) value_index_.emplace(values_[i].key, i);
  }
  for (TensorInfo& tensor : contents.tensors) {
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
      bad_input("{}: tensor {} is in another part too", place, tensor.name);
    }
    tensors_.push_back(std::move(tensor));
  }
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& place) {
  GgufFile out;
  out.add(bytes, place);
  const auto parts = out.integer("split.count");
  if (parts && *parts > 1) {
    bad_input("{}: one of {} parts; open the first, whose name must end in -00001-of-{:05}.gguf", place, *parts,
              *parts);
  }
  return out;
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  const auto name = part_name(path.filename().string());
  MappedFile first(path);
  if (!name || name->parts <= 1) {
    GgufFile out = parse(first.bytes(), path.string());
    out.files_.push_back(std::move(first));
    return out;
  }
  if (name->part != 1) bad_input("{}: part {}; open part 1", path.string(), name->part);
  GgufFile out;
  out.add(first.bytes(), path.string());
  out.files_.push_back(std::move(first));
  if (out.integer("split.count") != name->parts) {
    bad_input("{}: the name says {} parts, split.count says {}", path.string(), name->parts,
              out.integer("split.count").value_or(0));
  }
  for (int part = 2; part <= name->parts; ++part) {
    const auto next = path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", name->prefix, part, name->parts);
    MappedFile file(next);
    const GgufFile alone = [&] {
      GgufFile one;
      one.add(file.bytes(), next.string());
      return one;
    }();
    if (alone.integer("split.no") != part - 1 || alone.integer("split.count") != name->parts) {
      bad_input("{}: split.no and split.count do not say part {} of {}", next.string(), part, name->parts);
    }
    out.add(file.bytes(), next.string());
    out.files_.push_back(std::move(file));
  }
  const auto total = out.integer("split.tensors.count");
  if (total && *total != static_cast<std::int64_t>(out.tensors_.size())) {
    bad_input("{}: the parts hold {} tensors, split.tensors.count says {}", path.string(), out.tensors_.size(), *total);
  }
  return out;
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  const auto found = tensor_index_.find(std::string(name));
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::value(std::string_view key) const {
  const auto found = value_index_.find(key);
  return found == value_index_.end() ? nullptr : &values_[found->second];
}

const GgufValue* GgufFile::scalar(std::string_view key) const {
  const GgufValue* out = value(key);
  if (out != nullptr && out->is_array) wrong_kind(place_, *out, "a single value");
  return out;
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* found = scalar(key);
  if (found == nullptr) return std::nullopt;
  const auto out = integer_at(*found, 0);
  if (!out) wrong_kind(place_, *found, "an integer");
  return out;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* found = scalar(key);
  if (found == nullptr) return std::nullopt;
  const auto out = number_at(*found, 0);
  if (!out) wrong_kind(place_, *found, "a number");
  return out;
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* found = scalar(key);
  if (found == nullptr) return std::nullopt;
  const auto out = boolean_at(*found, 0);
  if (!out) wrong_kind(place_, *found, "a boolean");
  return out;
}

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  if (scalar(key) == nullptr) return std::nullopt;
  return strings(key)->front();
}

std::optional<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  const GgufValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  return list_of<std::int64_t>(place_, *found, "a list of integers", integer_at);
}

std::optional<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  const GgufValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  return list_of<double>(place_, *found, "a list of numbers", number_at);
}

std::optional<std::vector<bool>> GgufFile::booleans(std::string_view key) const {
  const GgufValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  return list_of<bool>(place_, *found, "a list of booleans", boolean_at);
}

std::optional<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  const GgufValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (found->type != GgufType::string) wrong_kind(place_, *found, "text");
  std::vector<std::string_view> out;
  out.reserve(found->count);
  const std::byte* at = found->bytes.data();
  for (std::uint64_t i = 0; i < found->count; ++i) {
    const auto size = load<std::uint64_t>(at);
    out.emplace_back(reinterpret_cast<const char*>(at + sizeof size), size);
    at += sizeof size + size;
  }
  return out;
}

}  // namespace dgemma
