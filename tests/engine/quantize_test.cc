// quantize_gguf: what is copied, what is encoded, what is refused. The block formats themselves are tested against
// other programs in tests/kernels; that the gguf package reads these files, in tools/reference/check_convert.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/bits.h"
#include "base/error.h"
#include "base/random.h"
#include "engine/quantize_gguf.h"
#include "kernels/dequantize.h"

namespace dgemma {
namespace {

namespace fs = std::filesystem;

constexpr WeightMix kMixes[] = {WeightMix::f32,    WeightMix::f16,   WeightMix::bf16, WeightMix::q8_0,
                                WeightMix::q4_0,   WeightMix::q4_k,  WeightMix::q5_k, WeightMix::q6_k,
                                WeightMix::q4_k_m, WeightMix::q5_k_m};

class Quantize : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("dgemma_quantize_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // 12 uniforms less 6: close to a normal distribution.
    values_.resize(40 * 3 * 512);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      double sum = -6;
      for (std::uint64_t k = 0; k < 12; ++k) sum += random_uniform(7, k, i);
      values_[i] = round_to_bf16(static_cast<float>(0.02 * sum));
      halves_.push_back(f32_to_bf16(values_[i]));
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write_source(const fs::path& path) const {
    GgufWriter writer;
    writer.add_string("general.architecture", "diffusion-gemma");
    writer.add_u32("general.file_type", 32);
    writer.add_i32s("list", std::vector<std::int32_t>{1, 2});
    const auto f32 = [this](std::size_t count) {
      return [this, count] { return std::as_bytes(std::span(values_).first(count)); };
    };
    const auto bf16 = [this](std::size_t count) {
      return [this, count] { return std::as_bytes(std::span(halves_).first(count)); };
    };
    writer.add_tensor({"output_norm.weight", DType::bf16, {512}, bf16(512)});
    writer.add_tensor({"blk.0.ffn_gate_inp.weight", DType::f32, {4, 512}, f32(4 * 512)});
    writer.add_tensor({"blk.0.attn_v.weight", DType::f32, {30, 512}, f32(30 * 512)});
    writer.add_tensor({"blk.0.ffn_gate_up_exps.weight", DType::bf16, {40, 3, 512}, bf16(40 * 3 * 512)});
    writer.add_tensor({"blk.0.ffn_down_exps.weight", DType::bf16, {30, 16, 96}, bf16(30 * 16 * 96)});
    writer.write(path);
  }

  GgufOutput output(const std::string& name, WeightMix mix, int threads = 2) const {
    GgufOutput out;
    out.path = folder_ / name;
    out.mix = mix;
    out.threads = threads;
    return out;
  }

  fs::path folder_;
  std::vector<float> values_;
  std::vector<std::uint16_t> halves_;
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<float> decoded(const TensorInfo& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.shape) count *= extent;
  std::vector<float> out(static_cast<std::size_t>(count));
  dequantize_for(static_cast<std::uint32_t>(tensor.dtype))(tensor.bytes.data(), out.data(), count);
  return out;
}

// Root mean square of the difference over that of the values.
double relative_error(std::span<const float> found, std::span<const float> expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    error += (double{found[i]} - expected[i]) * (double{found[i]} - expected[i]);
    size += double{expected[i]} * expected[i];
  }
  return std::sqrt(error / size);
}

// For a normal distribution: the step is the range over the codes, its error step / sqrt(12). The bounds leave room.
double bound_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::bf16:  // the values are BF16
      return 0;
    case DType::f16:
      return 1e-3;
    case DType::q8_0:
      return 0.008;
    case DType::q6_k:
      return 0.025;
    case DType::q5_k:
    case DType::q5_0:
    case DType::q5_1:
      return 0.05;
    default:
      return 0.1;
  }
}

TEST_F(Quantize, EveryMixHoldsTheValuesAndTheMetadata) {
  write_source(folder_ / "source.gguf");
  const GgufFile source = GgufFile::open(folder_ / "source.gguf");
  for (const WeightMix mix : kMixes) {
    const std::string name = "mix" + std::to_string(static_cast<int>(mix)) + ".gguf";
    const WrittenTypes written = quantize_gguf(folder_ / "source.gguf", output(name, mix));
    const GgufFile file = GgufFile::open(folder_ / name);
    EXPECT_EQ(written.file_bytes, fs::file_size(folder_ / name));
    EXPECT_EQ(file.string("general.architecture"), "diffusion-gemma");
    EXPECT_EQ(file.integers("list"), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(file.integer("general.file_type"), file_type(mix, {}));
    EXPECT_EQ(file.integer("general.quantization_version"), 2);
    const std::vector<DType> types = weight_types(mix, source.tensors());
    ASSERT_EQ(file.tensors().size(), source.tensors().size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      const TensorInfo &found = file.tensors()[i], &expected = source.tensors()[i];
      EXPECT_EQ(found.name, expected.name);
      EXPECT_EQ(found.shape, expected.shape);
      EXPECT_EQ(found.dtype, types[i]);
      const double error = relative_error(decoded(found), decoded(expected));
      EXPECT_LE(error, bound_of(found.dtype)) << found.name << " " << dtype_name(found.dtype);
      if (bound_of(found.dtype) > 1e-3) {
        EXPECT_GE(error, bound_of(found.dtype) / 10) << found.name;
      }
    }
  }
}

TEST_F(Quantize, ThreadsDoNotChangeTheFile) {
  write_source(folder_ / "source.gguf");
  quantize_gguf(folder_ / "source.gguf", output("one.gguf", WeightMix::q4_k_m, 1));
  quantize_gguf(folder_ / "source.gguf", output("eight.gguf", WeightMix::q4_k_m, 8));
  EXPECT_EQ(text_of(folder_ / "one.gguf"), text_of(folder_ / "eight.gguf"));
}

TEST_F(Quantize, AsStoredKeepsMatrices) {
  write_source(folder_ / "source.gguf");
  quantize_gguf(folder_ / "source.gguf", output("same.gguf", WeightMix::as_stored));
  const GgufFile file = GgufFile::open(folder_ / "same.gguf");
  EXPECT_EQ(file.integer("general.file_type"), 32);
  EXPECT_EQ(file.find("output_norm.weight")->dtype, DType::f32);
  const TensorInfo* experts = file.find("blk.0.ffn_gate_up_exps.weight");
  EXPECT_EQ(experts->dtype, DType::bf16);
  EXPECT_EQ(std::memcmp(experts->bytes.data(), halves_.data(), experts->bytes.size()), 0);
}

TEST_F(Quantize, OverwritesOnlyWhenAsked) {
  write_source(folder_ / "source.gguf");
  std::ofstream(folder_ / "taken.gguf") << "mine";
  GgufOutput out = output("taken.gguf", WeightMix::q8_0);
  EXPECT_THROW(quantize_gguf(folder_ / "source.gguf", out), Error);
  EXPECT_EQ(text_of(folder_ / "taken.gguf"), "mine");
  out.overwrite = true;
  quantize_gguf(folder_ / "source.gguf", out);
  EXPECT_EQ(GgufFile::open(folder_ / "taken.gguf").tensors().size(), 5u);
  out.path = folder_ / "source.gguf";
  EXPECT_THROW(quantize_gguf(folder_ / "source.gguf", out), Error);
  out.path = folder_;
  EXPECT_THROW(quantize_gguf(folder_ / "source.gguf", out), Error);
  out.path = folder_ / "nowhere" / "out.gguf";
  EXPECT_THROW(quantize_gguf(folder_ / "source.gguf", out), Error);
}

TEST_F(Quantize, SecondRoundingMustBeAskedFor) {
  write_source(folder_ / "source.gguf");
  quantize_gguf(folder_ / "source.gguf", output("q8.gguf", WeightMix::q8_0));
  GgufOutput out = output("q4.gguf", WeightMix::q4_k);
  EXPECT_THROW(quantize_gguf(folder_ / "q8.gguf", out), Error);
  EXPECT_FALSE(fs::exists(out.path));
  out.requantize = true;
  quantize_gguf(folder_ / "q8.gguf", out);
  EXPECT_EQ(GgufFile::open(out.path).find("blk.0.attn_v.weight")->dtype, DType::q4_k);
  quantize_gguf(folder_ / "q8.gguf", output("wide.gguf", WeightMix::f32));  // back to floats: no second rounding
}

TEST_F(Quantize, ValuesThatDoNotFitAreNamed) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 7e4f}) {
    const float before = values_[1234];
    values_[1234] = bad;
    write_source(folder_ / "source.gguf");
    values_[1234] = before;
    for (const WeightMix mix : {WeightMix::f16, WeightMix::q8_0, WeightMix::q4_k_m}) {
      const GgufOutput out = output("out.gguf", mix);
      try {
        quantize_gguf(folder_ / "source.gguf", out);
        ADD_FAILURE() << bad;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("blk.0.attn_v.weight: element 1234"));
      }
      EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);  // no leftovers
    }
  }
}

TEST_F(Quantize, ProgressCountsAndCanGiveUp) {
  write_source(folder_ / "source.gguf");
  GgufOutput out = output("out.gguf", WeightMix::q4_k);
  std::vector<std::string> names;
  std::uint64_t done = 0;
  out.progress = [&](const WriteProgress& progress) {
    EXPECT_EQ(progress.tensor, names.size());
    EXPECT_EQ(progress.tensors, 5u);
    EXPECT_GE(progress.bytes_done, done);
    EXPECT_LT(progress.bytes_done, progress.bytes_total);
    done = progress.bytes_done;
    names.emplace_back(progress.name);
  };
  quantize_gguf(folder_ / "source.gguf", out);
  EXPECT_EQ(names.size(), 5u);
  fs::remove(out.path);
  struct GaveUp {};
  out.progress = [](const WriteProgress& progress) {
    if (progress.tensor == 3) throw GaveUp();
  };
  EXPECT_THROW(quantize_gguf(folder_ / "source.gguf", out), GaveUp);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace dgemma
