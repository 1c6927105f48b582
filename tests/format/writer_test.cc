// The writers against files of the Python packages: what those packages wrote, read and written again, is the same
// bytes (GGUF) or the same tensors (safetensors). And files appear whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "format/gguf_writer.h"
#include "format/safetensors.h"
#include "format/safetensors_writer.h"

namespace dgemma {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(DGEMMA_SOURCE_DIR) / "tests/format/golden";

// The files go to a temporary folder, or stay in DGEMMA_WRITTEN_FOLDER for tools/reference/check_format_roundtrip.py.
class Writer : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* kept = std::getenv("DGEMMA_WRITTEN_FOLDER");
    keep_ = kept != nullptr;
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::path(keep_ ? kept : ::testing::TempDir()) / ("dgemma_writer_" + test);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!keep_) std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
  bool keep_ = false;
};

TensorSource source_of(const TensorInfo& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape, [bytes = tensor.bytes] { return bytes; }};
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST_F(Writer, GgufIsThePackagesFileByteForByte) {
  const GgufFile file = GgufFile::open(kGolden / "small.gguf");
  GgufWriter writer;
  for (const GgufValue& value : file.values()) writer.add(value);
  for (const TensorInfo& tensor : file.tensors()) writer.add_tensor(source_of(tensor));
  EXPECT_EQ(writer.file_bytes(), std::filesystem::file_size(kGolden / "small.gguf"));
  writer.write(folder_ / "copy.gguf");
  EXPECT_TRUE(same_bytes(MappedFile(kGolden / "small.gguf").bytes(), MappedFile(folder_ / "copy.gguf").bytes()));
}

TEST_F(Writer, GgufTypedValues) {
  GgufWriter writer;
  writer.add_u32("general.alignment", 64);
  writer.add_f32("f32", 0.5f);
  writer.add_boolean("bool", true);
  writer.add_string("string", "text");
  writer.add_i32s("i32s", std::vector<std::int32_t>{-1, 2});
  writer.add_f32s("f32s", std::vector<float>{0.25f});
  writer.add_booleans("bools", {false, true});
  writer.add_strings("strings", std::vector<std::string>{"", "b"});
  EXPECT_THROW(writer.add_u32("f32", 1), Error);
  EXPECT_THROW(writer.add_u32("", 1), Error);
  const std::vector<float> ramp{-2.0f, -1.875f, -1.75f, -1.625f, -1.5f, -1.375f};
  const auto bytes = [&ramp] { return std::as_bytes(std::span(ramp)); };
  writer.add_tensor({"one", DType::f32, {2, 3}, bytes});
  writer.add_tensor({"two", DType::f32, {6}, bytes});
  writer.write(folder_ / "typed.gguf");
  const GgufFile file = GgufFile::open(folder_ / "typed.gguf");
  EXPECT_EQ(file.integer("general.alignment"), 64);
  EXPECT_EQ(file.number("f32"), 0.5);
  EXPECT_EQ(file.boolean("bool"), true);
  EXPECT_EQ(file.string("string"), "text");
  EXPECT_EQ(file.integers("i32s"), (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(file.numbers("f32s"), std::vector<double>{0.25});
  EXPECT_EQ(file.booleans("bools"), (std::vector<bool>{false, true}));
  EXPECT_EQ(file.strings("strings"), (std::vector<std::string_view>{"", "b"}));
}

TEST_F(Writer, SafetensorsHoldsThePackagesTensors) {
  const SafetensorsFile file = SafetensorsFile::open(kGolden / "small.safetensors");
  std::vector<TensorSource> sources;
  for (const TensorInfo& tensor : file.tensors()) sources.push_back(source_of(tensor));
  write_safetensors(folder_ / "copy.safetensors", sources, {{"format", "pt"}});
  const SafetensorsFile copy = SafetensorsFile::open(folder_ / "copy.safetensors");
  ASSERT_EQ(copy.tensors().size(), file.tensors().size());
  for (const TensorInfo& tensor : file.tensors()) {
    const TensorInfo* other = copy.find(tensor.name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->dtype, tensor.dtype);
    EXPECT_EQ(other->shape, tensor.shape);
    EXPECT_TRUE(same_bytes(other->bytes, tensor.bytes));
  }
}

TEST_F(Writer, RefusesWhatCannotBeStored) {
  const auto nothing = [] { return std::span<const std::byte>(); };
  GgufWriter writer;
  EXPECT_THROW(writer.add_tensor({"", DType::f32, {1}, nothing}), Error);
  EXPECT_THROW(writer.add_tensor({std::string(64, 'n'), DType::f32, {1}, nothing}), Error);
  EXPECT_THROW(writer.add_tensor({"\xff", DType::f32, {1}, nothing}), Error);
  EXPECT_THROW(writer.add_tensor({std::string("a\0b", 3), DType::f32, {1}, nothing}), Error);
  EXPECT_THROW(writer.add_u32("\xc3", 1), Error);
  EXPECT_THROW(writer.add_tensor({"t", DType::f32, {}, nothing}), Error);
  EXPECT_THROW(writer.add_tensor({"t", DType::f32, {0}, nothing}), Error);
  EXPECT_THROW(writer.add_tensor({"t", DType::q8_0, {33}, nothing}), Error);
  EXPECT_THROW(writer.add_tensor({"t", DType::f32, {std::int64_t{1} << 62, 4}, nothing}), Error);
  const TensorSource block{"t", DType::q8_0, {32}, nothing};
  EXPECT_THROW(write_safetensors(folder_ / "x.safetensors", std::span(&block, 1)), Error);
}

TEST_F(Writer, AFailedWriteLeavesTheOldFileAlone) {
  const std::filesystem::path path = folder_ / "x.gguf";
  std::ofstream(path) << "old";
  GgufWriter writer;
  writer.add_tensor({"t", DType::f32, {4}, []() -> std::span<const std::byte> { bad_input("the source fails"); }});
  EXPECT_THROW(writer.write(path), Error);
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()), 1);
  EXPECT_THROW(AtomicFile(folder_ / "nowhere" / "x"), Error);
}

}  // namespace
}  // namespace dgemma
