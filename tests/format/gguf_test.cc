// Files by the gguf package must read back; files wrong in one way must be refused by an Error, whatever they claim.
#include "format/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "gguf_builder.h"

namespace dgemma {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kGolden = std::filesystem::path(DGEMMA_SOURCE_DIR) / "tests/format/golden";

void expect_error(const GgufBuilder& file, const char* text, ErrorKind kind = ErrorKind::bad_input) {
  try {
    parse_gguf(file.bytes(), "test");
    ADD_FAILURE() << "accepted; expected an error about " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

GgufBuilder one_tensor(const std::vector<std::uint64_t>& extents, std::uint32_t type = 0, std::uint64_t offset = 0) {
  return GgufBuilder().header(3, 1, 0).tensor("t", extents, type, offset).data(256);
}

GgufBuilder one_key(std::uint32_t type) { return GgufBuilder().header(3, 0, 1).key("k", type); }

TEST(Gguf, ReadsWhatThePackageWrote) {
  const GgufFile file = GgufFile::open(kGolden / "small.gguf");
  EXPECT_EQ(file.string("general.architecture"), "diffusion-gemma");
  EXPECT_EQ(file.integer("a.u8"), 200);
  EXPECT_EQ(file.integer("a.i8"), -100);
  EXPECT_EQ(file.integer("a.u16"), 60000);
  EXPECT_EQ(file.integer("a.i16"), -30000);
  EXPECT_EQ(file.integer("a.u32"), 4000000000);
  EXPECT_EQ(file.integer("a.i32"), -2000000000);
  EXPECT_EQ(file.integer("a.u64"), std::int64_t{1} << 62);
  EXPECT_EQ(file.integer("a.i64"), -(std::int64_t{1} << 62));
  EXPECT_EQ(file.number("a.f32"), 0.5);
  EXPECT_EQ(file.number("a.f64"), 0.1);
  EXPECT_EQ(file.number("a.u8"), 200.0);
  EXPECT_EQ(file.boolean("a.bool"), true);
  EXPECT_EQ(file.string("a.string"), "grüß dich");
  EXPECT_THAT(*file.strings("a.strings"), ElementsAre("", "eins", "zwei\n"));
  EXPECT_THAT(*file.integers("a.integers"), ElementsAre(8, -8, 2));
  EXPECT_THAT(*file.integers("a.u8"), ElementsAre(200));
  EXPECT_THAT(*file.numbers("a.floats"), ElementsAre(0.5, -1.25));
  EXPECT_THAT(*file.booleans("a.bools"), ElementsAre(true, false, true));
  EXPECT_EQ(file.integer("absent"), std::nullopt);
  EXPECT_THROW(file.integer("a.string"), Error);
  EXPECT_THROW(file.integer("a.f32"), Error);
  EXPECT_THROW(file.string("a.u8"), Error);
  EXPECT_THROW(file.integer("a.integers"), Error);
  EXPECT_THROW(file.boolean("a.u8"), Error);

  ASSERT_EQ(file.tensors().size(), 3u);
  const TensorInfo& matrix = *file.find("matrix.weight");
  EXPECT_THAT(matrix.shape, ElementsAre(3, 5));
  EXPECT_EQ(matrix.dtype, DType::f32);
  for (int i = 0; i < 15; ++i) {
    float value = 0;
    std::memcpy(&value, matrix.bytes.data() + 4 * i, sizeof value);
    EXPECT_EQ(value, static_cast<float>(i) / 8 - 2);
  }
  EXPECT_THAT(file.find("half.weight")->shape, ElementsAre(2, 3, 4));
  const TensorInfo& blocks = *file.find("blocks.weight");
  EXPECT_THAT(blocks.shape, ElementsAre(2, 32));
  EXPECT_EQ(blocks.dtype, DType::q8_0);
  EXPECT_EQ(blocks.bytes.size(), 68u);
  EXPECT_EQ(std::to_integer<int>(blocks.bytes[34 + 2]), 240);  // -16
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Gguf, ReadsAllParts) {
  const GgufFile file = GgufFile::open(kGolden / "split-00001-of-00002.gguf");
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.integer("a.u32"), 7);
  EXPECT_THAT(file.find("two")->shape, ElementsAre(4));
  EXPECT_THROW(GgufFile::open(kGolden / "split-00002-of-00002.gguf"), Error);
}

// Two parts in a fresh folder; the first one claims `count` parts and `tensors` tensors, the second one to be `second`.
struct Split {
  std::uint16_t count = 2, second = 1;
  std::int32_t tensors = 2;
  bool write_second = true;
  const char* tensor = "b";
};

std::string open_split(const Split& split) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "dgemma_split_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto part = [&](std::uint16_t number, const char* tensor) {
    return GgufBuilder()
        .header(3, 1, 3)
        .key("split.no", 2)
        .put(number)
        .key("split.count", 2)
        .put(split.count)
        .key("split.tensors.count", 5)
        .put(split.tensors)
        .tensor(tensor, {8}, 0, 0)
        .data(32);
  };
  const auto save = [&](const char* name, const GgufBuilder& file) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.bytes().data()), static_cast<std::streamsize>(file.bytes().size()));
  };
  save("m-00001-of-00002.gguf", part(0, "a"));
  if (split.write_second) save("m-00002-of-00002.gguf", part(split.second, split.tensor));
  std::string message;
  try {
    EXPECT_EQ(GgufFile::open(folder / "m-00001-of-00002.gguf").tensors().size(), 2u);
  } catch (const Error& error) {
    message = error.what();
  }
  std::filesystem::remove_all(folder);
  return message;
}

TEST(Gguf, PartsMustBelongTogether) {
  EXPECT_EQ(open_split({}), "");
  EXPECT_THAT(open_split({.count = 3}), HasSubstr("the name says 2 parts, split.count says 3"));
  EXPECT_THAT(open_split({.count = 65535}), HasSubstr("split.count says 65535"));
  EXPECT_THAT(open_split({.second = 0}), HasSubstr("do not say part 2 of 2"));
  EXPECT_THAT(open_split({.tensors = 3}), HasSubstr("hold 2 tensors, split.tensors.count says 3"));
  EXPECT_THAT(open_split({.write_second = false}), HasSubstr("m-00002-of-00002.gguf"));
  EXPECT_THAT(open_split({.tensor = "a"}), HasSubstr("is in another part too"));
}

TEST(Gguf, EveryTruncationIsAnError) {
  const MappedFile file(kGolden / "small.gguf");
  const std::vector<std::byte> whole(file.bytes().begin(), file.bytes().end());
  // The writer pads the last tensor (68 bytes) to 96; without those 28 the file is still whole.
  for (std::size_t size = 0; size + 28 < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse_gguf(cut, "test"), Error) << size;
  }
}

TEST(Gguf, Header) {
  expect_error(GgufBuilder(), "magic");
  expect_error(GgufBuilder().raw("GGUX").put(3u), "not a GGUF");
  for (const std::uint32_t version : {0u, 1u, 4u}) expect_error(GgufBuilder().header(version, 0, 0), "version");
  expect_error(GgufBuilder().header(0x03000000u, 0, 0), "big-endian");
  for (const std::uint64_t count : {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{2}}) {
    expect_error(GgufBuilder().header(3, count, 0).data(16), "tensor count");
    expect_error(GgufBuilder().header(3, 0, count).put('x'), "key count");
  }
  EXPECT_TRUE(parse_gguf(GgufBuilder().header(3, 0, 0).bytes(), "test").tensors.empty());
  EXPECT_TRUE(parse_gguf(GgufBuilder().header(2, 0, 0).bytes(), "test").values.empty());
}

TEST(Gguf, Keys) {
  expect_error(GgufBuilder().header(3, 0, 1).key("", 0).put('x').data(32), "0 bytes");
  expect_error(GgufBuilder().header(3, 0, 1).key(std::string(65536, 'k'), 0).put('x'), "65536 bytes");
  expect_error(GgufBuilder().header(3, 0, 1).key(std::string_view("a\0b", 3), 0).put('x'), "UTF-8");
  for (const char* text : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
    expect_error(GgufBuilder().header(3, 0, 1).key(text, 0).put('x').data(32), "UTF-8");
  }
  expect_error(GgufBuilder().header(3, 0, 2).key("k", 0).put('x').key("k", 0).put('x'), "twice");
  expect_error(GgufBuilder().header(3, 0, 1).put(std::uint64_t{1} << 62).data(32), "needs 4611686018427387904 bytes");
  expect_error(one_key(13).data(32), "type 13");
  expect_error(one_key(7).put('\7'), "boolean");
  expect_error(one_key(8).put(std::uint64_t{1} << 62), "needs 4611686018427387904 bytes");
  expect_error(one_key(9).put(9u).put(std::uint64_t{1}).data(32), "array of arrays");
  for (const std::uint64_t count : {std::uint64_t{1} << 30, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    for (const std::uint32_t element : {0u, 4u, 8u, 12u}) {
      expect_error(one_key(9).put(element).put(count).data(32), "bytes left");
    }
  }
}

TEST(Gguf, Alignment) {
  const auto with = [](std::uint32_t alignment) {
    return GgufBuilder().header(3, 1, 1).key("general.alignment", 4).put(alignment).tensor("t", {8}, 0, 0);
  };
  for (const std::uint32_t bad : {0u, 3u, 131072u, 1u << 31}) expect_error(with(bad).data(32), "power of two");
  expect_error(GgufBuilder().header(3, 0, 1).key("general.alignment", 8).string("32"), "must be a u32");
  expect_error(GgufBuilder().header(3, 0, 1).key("general.alignment", 10).put(std::uint64_t{32}), "must be a u32");
  for (const std::uint32_t good : {1u, 64u}) {
    EXPECT_EQ(parse_gguf(with(good).data(32, good).bytes(), "test").tensors[0].bytes.size(), 32u);
  }
}

TEST(Gguf, Tensors) {
  EXPECT_EQ(parse_gguf(one_tensor({64}).bytes(), "test").tensors[0].bytes.size(), 256u);
  expect_error(GgufBuilder().header(3, 1, 0).tensor("", {8}, 0, 0).data(256), "0 bytes");
  expect_error(GgufBuilder().header(3, 1, 0).tensor(std::string(64, 'n'), {8}, 0, 0).data(256), "64 bytes");
  expect_error(GgufBuilder().header(3, 2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).data(256), "twice");
  expect_error(one_tensor({}), "0 dimensions");
  expect_error(one_tensor({2, 2, 2, 2, 2}), "5 dimensions");
  expect_error(one_tensor({0}), "dimension 0 is 0");
  expect_error(one_tensor({8, 0}), "dimension 1 is 0");
  expect_error(one_tensor({~std::uint64_t{0}}), "is -1");
  constexpr std::uint64_t kOne = 1;
  for (const std::vector<std::uint64_t>& extents : {std::vector<std::uint64_t>{kOne << 32, kOne << 32},
                                                    {kOne << 31, kOne << 32},
                                                    {kOne << 62, 4, 1, 1},
                                                    {kOne << 62},
                                                    {(kOne << 62) - 1}}) {
    expect_error(one_tensor(extents), "shape needs more");
    expect_error(one_tensor(extents, 28), "shape needs more");
  }
  expect_error(one_tensor({(kOne << 62) - 1}, 24), "shape needs more");
  for (const std::uint32_t type : {4u, 5u, 31u, 36u, 43u, 9999u, ~0u}) {
    expect_error(one_tensor({32}, type), "type", ErrorKind::unsupported);
  }
  expect_error(one_tensor({33}, 8), "multiple");
  expect_error(one_tensor({32, 8}, 12), "multiple");
  for (const std::uint64_t offset : {kOne, kOne << 6, kOne << 40, ~std::uint64_t{0}}) {
    expect_error(one_tensor({8}, 0, offset), "expected 0");
  }
  expect_error(one_tensor({65}), "needs 260 bytes");
  // Overlapping, and with a gap.
  for (const std::uint64_t second : {0u, 32u, 96u}) {
    expect_error(GgufBuilder().header(3, 2, 0).tensor("a", {16}, 0, 0).tensor("b", {8}, 0, second).data(256),
                 "expected 64");
  }
}

}  // namespace
}  // namespace dgemma
