// A file by the safetensors package must read back; files wrong in one way must be refused by an Error.
#include "format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/error.h"

namespace dgemma {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kGolden = std::filesystem::path(DGEMMA_SOURCE_DIR) / "tests/format/golden";

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes, std::uint64_t claimed_bytes) {
  std::vector<std::byte> out(sizeof claimed_bytes + header.size() + data_bytes);
  std::memcpy(out.data(), &claimed_bytes, sizeof claimed_bytes);
  std::memcpy(out.data() + sizeof claimed_bytes, header.data(), header.size());
  return out;
}

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

void expect_error(const std::vector<std::byte>& file, const char* text, ErrorKind kind = ErrorKind::bad_input) {
  try {
    parse_safetensors(file, "test");
    ADD_FAILURE() << "accepted; expected an error about " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

std::string entry(const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string header_of(const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
  return R"({"t":)" + entry(shape, offsets, dtype) + "}";
}

TEST(Safetensors, ReadsWhatThePackageWrote) {
  const SafetensorsFile file = SafetensorsFile::open(kGolden / "small.safetensors");
  ASSERT_EQ(file.tensors().size(), 3u);
  const TensorInfo& matrix = *file.find("matrix");
  EXPECT_THAT(matrix.shape, ElementsAre(3, 5));
  EXPECT_EQ(matrix.dtype, DType::f32);
  for (int i = 0; i < 15; ++i) {
    float value = 0;
    std::memcpy(&value, matrix.bytes.data() + 4 * i, sizeof value);
    EXPECT_EQ(value, static_cast<float>(i) / 8 - 2);
  }
  EXPECT_THAT(file.find("half")->shape, ElementsAre(2, 3, 4));
  EXPECT_EQ(file.find("half")->dtype, DType::f16);
  EXPECT_EQ(file.find("ids")->dtype, DType::i64);
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const MappedFile file(kGolden / "small.safetensors");
  for (std::size_t size = 0; size < file.bytes().size(); ++size) {
    const std::vector<std::byte> cut(file.bytes().begin(), file.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse_safetensors(cut, "test"), Error) << size;
  }
}

TEST(Safetensors, Header) {
  expect_error(file_of("{}", 0, 100'000'001), "claims");
  expect_error(file_of("{}", 0, ~std::uint64_t{0}), "claims");
  expect_error(file_of("{}", 0, 3), "claims");
  expect_error(file_of("{", 0), "JSON");
  expect_error(file_of("[]", 0), "object");
  expect_error(file_of("{}", 1), "end at byte 0");
  expect_error(file_of(std::string(1'000'000, '['), 0), "nested deeper");
  expect_error(file_of(R"({"t":)" + entry("[1]", "[0,4]") + R"(,"t":)" + entry("[1]", "[0,4]") + "}", 4), "twice");
  EXPECT_TRUE(parse_safetensors(file_of(R"({"__metadata__":{"format":"pt"}})", 0), "test").empty());
}

TEST(Safetensors, Tensors) {
  EXPECT_EQ(parse_safetensors(file_of(header_of("[2,2]", "[0,16]"), 16), "test")[0].bytes.size(), 16u);
  EXPECT_EQ(parse_safetensors(file_of(header_of("[]", "[0,4]"), 4), "test")[0].bytes.size(), 4u);
  expect_error(file_of(header_of("[4]", "[0,16]", "F8_E4M3"), 16), "F8_E4M3", ErrorKind::unsupported);
  expect_error(file_of(header_of("[4]", "[0,8]"), 16), "needs 16 bytes");
  expect_error(file_of(header_of("[4]", "[8,0]"), 16), "outside");
  expect_error(file_of(header_of("[4]", "[16,32]"), 16), "outside");
  expect_error(file_of(header_of("[4]", "[0,18446744073709551615]"), 16), "outside");
  expect_error(file_of(header_of("[4]", "[0]"), 16), "two data_offsets");
  expect_error(file_of(header_of("[4]", "[-1,15]"), 16), "non-negative");
  expect_error(file_of(header_of("[4.0]", "[0,16]"), 16), "non-negative");
  expect_error(file_of(header_of("[0]", "[0,0]"), 0), "is 0");
  expect_error(file_of(header_of("[4294967296,4294967296]", "[0,0]"), 16), "more than the file");
  expect_error(file_of(header_of("[4611686018427387904,4]", "[0,0]"), 16), "more than the file");
  expect_error(file_of(header_of("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "8 dimensions");
  for (const char* second : {"[0,4]", "[2,6]", "[8,12]"}) {  // twice the same, overlapping, after a hole
    const std::string header = R"({"a":)" + entry("[1]", "[0,4]") + R"(,"b":)" + entry("[1]", second) + "}";
    expect_error(file_of(header, 12), "overlap or leave a hole");
  }
  expect_error(file_of(header_of("[1]", "[0,4]"), 8), "end at byte 4");
}

TEST(Safetensors, IndexCannotLeaveItsDirectory) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "dgemma_index";
  std::filesystem::create_directories(folder);
  for (const char* shard : {"../x.safetensors", "/x.safetensors", "sub/x.safetensors", "..", "", "x.bin"}) {
    std::ofstream(folder / "model.safetensors.index.json") << R"({"weight_map":{"t":")" << shard << R"("}})";
    try {
      SafetensorsFile::open_directory(folder);
      ADD_FAILURE() << shard;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("not the name of a .safetensors file")) << shard;
    }
  }
  std::filesystem::copy_file(kGolden / "small.safetensors", folder / "x.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder / "model.safetensors.index.json") << R"({"weight_map":{"matrix":"x.safetensors"}})";
  EXPECT_NE(SafetensorsFile::open_directory(folder).find("matrix"), nullptr);
  std::ofstream(folder / "model.safetensors.index.json") << R"({"weight_map":{"absent":"x.safetensors"}})";
  EXPECT_THROW(SafetensorsFile::open_directory(folder), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dgemma
