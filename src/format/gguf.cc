#include "format/gguf.h"

#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"

namespace dgemma {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read in place");

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 65536;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxNameBytes = 63;  // llama.cpp's limit
constexpr std::uint64_t kMinKeyRecord = 13;
constexpr std::uint64_t kMinTensorRecord = 24;
constexpr std::uint32_t kMaxDimensions = 4;

// Bytes of a scalar; 0 for strings and arrays, whose size is in the file.
std::uint64_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& place) : bytes_(bytes), place_(place) {}

  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return bytes_.size() - offset_; }

  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      bad_input("{}: {} at byte {} needs {} bytes, {} are left; is the file cut short?", place_, what, offset_, count,
                remaining());
    }
    const auto out = bytes_.subspan(offset_, count);
    offset_ += count;
    return out;
  }

  template <typename T>
  T number(std::string_view what) {
    T out;
    std::memcpy(&out, take(sizeof out, what).data(), sizeof out);
    return out;
  }

  std::string_view string(std::string_view what) {
    const auto text = take(number<std::uint64_t>(what), what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  // A key or a tensor name: 1 to `limit` bytes of UTF-8 without NUL.
  std::string_view name(std::string_view what, std::uint64_t limit) {
    const std::size_t begin = offset_;
    const std::string_view text = string(what);
    if (text.empty() || text.size() > limit) {
      bad_input("{}: {} at byte {} has {} bytes, expected 1 to {}", place_, what, begin, text.size(), limit);
    }
    if (text.find('\0') != std::string_view::npos || invalid_utf8(text) != std::string_view::npos) {
      bad_input("{}: {} at byte {} is not UTF-8 text without NUL", place_, what, begin);
    }
    return text;
  }

  std::uint64_t count(std::string_view what, std::uint64_t record_bytes) {
    const std::size_t begin = offset_;
    const auto out = number<std::uint64_t>(what);
    if (out > remaining() / record_bytes) {
      bad_input("{}: {} at byte {} is {}, more than the {} bytes left can hold", place_, what, begin, out, remaining());
    }
    return out;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& place_;
  std::size_t offset_ = 0;
};

GgufType read_type(Reader& reader, std::string_view key, const std::string& place) {
  const std::size_t begin = reader.offset();
  const auto id = reader.number<std::uint32_t>(key);
  if (id > static_cast<std::uint32_t>(GgufType::f64)) {
    bad_input("{}: key {}: value type {} at byte {} does not exist", place, key, id, begin);
  }
  return static_cast<GgufType>(id);
}

GgufValue read_value(Reader& reader, const std::string& place) {
  GgufValue value;
  value.key = reader.name("a metadata key", kMaxKeyBytes);
  value.type = read_type(reader, value.key, place);
  if (value.type == GgufType::array) {
    value.is_array = true;
    value.type = read_type(reader, value.key, place);
    if (value.type == GgufType::array) {
      bad_input("{}: key {}: an array of arrays at byte {}", place, value.key, reader.offset());
    }
    const bool strings = value.type == GgufType::string;
    value.count = reader.count(value.key, strings ? sizeof(std::uint64_t) : scalar_bytes(value.type));
  }
  value.offset = reader.offset();
  if (value.type == GgufType::string) {
    Reader whole = reader;
    for (std::uint64_t i = 0; i < value.count; ++i) reader.string(value.key);
    value.bytes = whole.take(reader.offset() - value.offset, value.key);
  } else {
    value.bytes = reader.take(value.count * scalar_bytes(value.type), value.key);
  }
  if (value.type == GgufType::boolean) {
    for (const std::byte byte : value.bytes) {
      if (std::to_integer<int>(byte) > 1) {
        bad_input("{}: key {}: a boolean from byte {} on is {}, expected 0 or 1", place, value.key, value.offset,
                  std::to_integer<int>(byte));
      }
    }
  }
  return value;
}

std::uint64_t alignment_of(const std::vector<GgufValue>& values, const std::string& place) {
  for (const GgufValue& value : values) {
    if (value.key != "general.alignment") continue;
    std::uint32_t out = 0;
    if (value.is_array || value.type != GgufType::u32) {
      bad_input("{}: general.alignment at byte {} must be a u32", place, value.offset);
    }
    std::memcpy(&out, value.bytes.data(), sizeof out);
    if (!std::has_single_bit(out) || out > kMaxAlignment) {
      bad_input("{}: general.alignment at byte {} is {}, expected a power of two up to {}", place, value.offset, out,
                kMaxAlignment);
    }
    return out;
  }
  return kDefaultAlignment;
}

// A tensor record; `begin` and `size` are its range in the data section, checked when that is known.
struct Record {
  TensorInfo tensor;
  std::uint64_t offset;
  std::uint64_t size;
  std::size_t at;
};

Record read_tensor(Reader& reader, std::uint64_t file_bytes, const std::string& place) {
  Record record{{}, 0, 0, reader.offset()};
  record.tensor.name = reader.name("a tensor name", kMaxNameBytes);
  const std::string& name = record.tensor.name;
  const auto dimensions = reader.number<std::uint32_t>(name);
  if (dimensions == 0 || dimensions > kMaxDimensions) {
    bad_input("{}: tensor {} at byte {} has {} dimensions, expected 1 to {}", place, name, record.at, dimensions,
              kMaxDimensions);
  }
  std::uint64_t extents[kMaxDimensions] = {};
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    extents[i] = reader.number<std::uint64_t>(name);
    if (extents[i] == 0 || extents[i] >> 63 != 0) {
      bad_input("{}: tensor {} at byte {}: dimension {} is {}, expected a positive number", place, name, record.at, i,
                static_cast<std::int64_t>(extents[i]));
    }
  }
  const auto type = reader.number<std::uint32_t>(name);
  const auto dtype = dtype_from_ggml(type);
  if (!dtype) {
    fail(ErrorKind::unsupported,
         "{}: tensor {} at byte {} has ggml type {}, which is retired, unknown or not built; convert the model to "
         "another type",
         place, name, record.at, type);
  }
  record.tensor.dtype = *dtype;
  const BlockShape block = block_shape(*dtype);
  const auto block_elements = static_cast<std::uint64_t>(block.elements);
  if (extents[0] % block_elements != 0) {
    bad_input("{}: tensor {} at byte {}: rows of {} are no multiple of the {} elements in a {} block", place, name,
              record.at, extents[0], block_elements, dtype_name(*dtype));
  }
  // The product stays at or below the file's size, and the division keeps it free of overflow.
  record.size = static_cast<std::uint64_t>(block.bytes);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::uint64_t factor = i == 0 ? extents[i] / block_elements : extents[i];
    if (factor > file_bytes / record.size) {
      bad_input("{}: tensor {} at byte {}: its shape needs more bytes than the {} of the file; is it cut short?", place,
                name, record.at, file_bytes);
    }
    record.size *= factor;
  }
  for (std::uint32_t i = dimensions; i > 0; --i) {
    record.tensor.shape.push_back(static_cast<std::int64_t>(extents[i - 1]));
  }
  record.offset = reader.number<std::uint64_t>(name);
  return record;
}

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) { return (size + alignment - 1) & ~(alignment - 1); }

}  // namespace

GgufContents parse_gguf(std::span<const std::byte> bytes, const std::string& place) {
  Reader reader(bytes, place);
  if (std::memcmp(reader.take(4, "the magic").data(), "GGUF", 4) != 0) bad_input("{}: not a GGUF file", place);
  const auto version = reader.number<std::uint32_t>("the version");
  if ((version & 0xffff) == 0 && version != 0) bad_input("{}: a big-endian GGUF file; convert it", place);
  if (version != 2 && version != 3) bad_input("{}: GGUF version {}, expected 2 or 3", place, version);
  const std::uint64_t tensor_count = reader.count("the tensor count", kMinTensorRecord);
  const std::uint64_t key_count = reader.count("the key count", kMinKeyRecord);

  GgufContents out;
  std::unordered_set<std::string_view> keys;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    out.values.push_back(read_value(reader, place));
    const GgufValue& value = out.values.back();
    if (!keys.insert(value.key).second) {
      bad_input("{}: key {} occurs twice, again at byte {}", place, value.key, value.offset);
    }
  }
  const std::uint64_t alignment = alignment_of(out.values, place);

  std::vector<Record> records;
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    records.push_back(read_tensor(reader, bytes.size(), place));
    if (!names.insert(records.back().tensor.name).second) {
      bad_input("{}: tensor {} occurs twice, again at byte {}", place, records.back().tensor.name, records.back().at);
    }
  }

  // Tensors follow each other in the order of their records, each padded: so they cannot overlap. The running sum stays
  // below tensor_count * (file size + alignment) only in theory: every step is checked against the data first.
  if (records.empty()) return out;
  reader.take(padded(reader.offset(), alignment) - reader.offset(), "the padding before the data");
  const std::span<const std::byte> data = bytes.subspan(reader.offset());
  std::uint64_t expected = 0;
  for (Record& record : records) {
    const std::string& name = record.tensor.name;
    if (record.offset != expected) {
      bad_input("{}: tensor {} (record at byte {}) starts at {} of the data, expected {}", place, name, record.at,
                record.offset, expected);
    }
    if (record.offset > data.size() || record.size > data.size() - record.offset) {
      bad_input("{}: tensor {} (record at byte {}) needs {} bytes from {} on, the data has {}; is the file cut short?",
                place, name, record.at, record.size, record.offset, data.size());
    }
    record.tensor.bytes = data.subspan(record.offset, record.size);
    expected += padded(record.size, alignment);
    out.tensors.push_back(std::move(record.tensor));
  }
  return out;
}

}  // namespace dgemma
