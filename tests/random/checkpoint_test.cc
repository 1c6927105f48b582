// The random checkpoint against what is known of the published files, and through the normal loader.
#include "random/checkpoint.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "kernels/dequantize.h"
#include "random/blocks.h"
#include "random/shapes.h"

namespace dgemma {
namespace {

RandomCheckpoint released(WeightMix mix) { return {diffusion_gemma_config(30), mix, 1}; }

std::uint64_t data_bytes(const RandomCheckpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : random_tensors(checkpoint))
    total += size_bytes({tensor.name, tensor.dtype, tensor.shape, {}});
  return total;
}

TEST(RandomCheckpoint, SizesOfTheReleasedShapes) {
  // Spec gguf.md 4.4; the first is its sum with 13 of the 25 attn_v in Q6_K (the device allocation of 16,013 MiB).
  EXPECT_EQ(data_bytes(released(WeightMix::q4_k_m)), 16'790'983'920u);
  EXPECT_EQ(data_bytes(released(WeightMix::q8_0)), 26'863'004'912u);
  EXPECT_EQ(data_bytes(released(WeightMix::bf16)), 50'525'008'112u);
  // "Add about 15 MB for tokenizer metadata."
  const std::uint64_t whole = random_checkpoint_bytes(released(WeightMix::q4_k_m));
  EXPECT_GT(whole, 16'790'983'920u + 10'000'000u);
  EXPECT_LT(whole, 16'790'983'920u + 20'000'000u);
}

// The dump of the published Q4_K_M file and the assignment that reproduces it, spec gguf.md 4.4.
TEST(RandomCheckpoint, TypesOfThePublishedMix) {
  std::map<DType, int> counts;
  std::map<std::string, DType> types;
  for (const TensorInfo& tensor : random_tensors(released(WeightMix::q4_k_m))) {
    ++counts[tensor.dtype];
    types[tensor.name] = tensor.dtype;
  }
  EXPECT_EQ(counts,
            (std::map<DType, int>{
                {DType::f32, 423}, {DType::q4_k, 194}, {DType::q5_0, 33}, {DType::q8_0, 28}, {DType::q6_k, 14}}));
  EXPECT_EQ(types.size(), 692u);
  EXPECT_EQ(types.at("token_embd.weight"), DType::q6_k);
  EXPECT_EQ(types.at("self_cond_down.weight"), DType::q5_0);
  EXPECT_EQ(types.at("self_cond_gate.weight"), DType::q4_k);
  EXPECT_EQ(types.at("blk.7.ffn_gate_inp.weight"), DType::f32);
  for (const int layer : {0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29}) {
    EXPECT_EQ(types.at(fmt::format("blk.{}.ffn_down_exps.weight", layer)), DType::q8_0) << layer;
  }
  EXPECT_EQ(types.at("blk.3.ffn_down_exps.weight"), DType::q5_0);
  EXPECT_FALSE(types.contains("blk.5.attn_v.weight"));
}

TEST(RandomCheckpoint, OtherMixesAreRefused) {
  EXPECT_THROW((void)random_tensors(released(WeightMix::q5_k_m)), Error);
  EXPECT_THROW((void)diffusion_gemma_config(0), Error);
}

// The blocks by the decoders, which are tested against ggml's.
TEST(RandomBlocks, MeanAndDeviation) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::q8_0, DType::q4_0, DType::q5_0, DType::q4_k, DType::q6_k}) {
    constexpr std::int64_t kRows = 200, kCols = 2816;
    constexpr float kDeviation = 0.02f;
    std::vector<std::byte> bytes(static_cast<std::size_t>(kRows * row_bytes(dtype, kCols)));
    random_rows(dtype, {1, 2}, 0, kRows, kCols, kDeviation, bytes.data());
    std::vector<float> values(kRows * kCols);
    dequantize_for(static_cast<std::uint32_t>(dtype))(bytes.data(), values.data(), kRows * kCols);
    double sum = 0, squares = 0, largest = 0;
    for (const float value : values) {
      sum += value;
      squares += static_cast<double>(value) * value;
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const auto count = static_cast<double>(values.size());
    // (Six standard errors of a mean of so many values are 0.008 deviations; Q4_0 and Q5_0 add the sign of 17,600
    // blocks.)
    EXPECT_NEAR(sum / count / kDeviation, 0, 0.01) << dtype_name(dtype);
    EXPECT_NEAR(std::sqrt(squares / count) / kDeviation, 1, 0.02) << dtype_name(dtype);
    EXPECT_LT(largest / kDeviation, 3.5) << dtype_name(dtype);
  }
}

TEST(RandomBlocks, ARowDependsOnItsNumberOnly) {
  std::vector<std::byte> together(4 * 1584), alone(1584);
  random_rows(DType::q4_k, {3, 4}, 10, 4, 2816, 1, together.data());
  random_rows(DType::q4_k, {3, 4}, 12, 1, 2816, 1, alone.data());
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + 2 * 1584));
  EXPECT_FALSE(std::equal(alone.begin(), alone.end(), together.begin()));
  EXPECT_THROW(random_rows(DType::q3_k, {}, 0, 1, 256, 1, alone.data()), Error);
}

class RandomFile : public ::testing::TestWithParam<WeightMix> {
 protected:
  std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) / fmt::format("dgemma_random_{}.gguf", static_cast<int>(GetParam()));
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_P(RandomFile, OpensAndRuns) {
  const RandomCheckpoint checkpoint{small_config(7), GetParam(), 5};
  const std::uint64_t written = write_random_checkpoint(checkpoint, path_, 2, {});
  EXPECT_EQ(written, random_checkpoint_bytes(checkpoint));
  const Engine engine = Engine::open(path_);
  EXPECT_EQ(engine.config().canvas_length, 32);
  EXPECT_EQ(engine.config().layers.size(), 7u);
  EXPECT_FALSE(engine.config().layers[5].sliding);
  EXPECT_EQ(engine.config().layers[5].rotating_pairs, 16);
  const auto planned = random_tensors(checkpoint);
  ASSERT_EQ(engine.checkpoint().tensors().size(), planned.size());
  for (const TensorInfo& tensor : planned) {
    const TensorInfo* found = engine.checkpoint().find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
  }

  Context c(1);
  SessionSettings settings;
  settings.context = 128;
  settings.denoise.max_denoising_steps = 2;
  settings.max_tokens = 32;
  Session session(engine, settings, engine.tokenizer().encode("hello there", SpecialTokens::plain));
  EXPECT_EQ(session.advance(c), Progress::prompt_encoded);
  EXPECT_EQ(session.advance(c), Progress::canvas_refined);
  for (const RowPrediction& row : session.canvas()->predictions()) {
    EXPECT_TRUE(std::isfinite(row.entropy));
    EXPECT_LT(row.entropy, std::log(1024.0f));  // not uniform: no zero or NaN has spread
  }
}

INSTANTIATE_TEST_SUITE_P(Mixes, RandomFile,
                         ::testing::Values(WeightMix::q4_k_m, WeightMix::q8_0, WeightMix::q4_0, WeightMix::bf16));

TEST(RandomCheckpoint, SameBytesWithAnyNumberOfThreads) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  const auto one = folder / "dgemma_random_one.gguf", three = folder / "dgemma_random_three.gguf";
  const RandomCheckpoint checkpoint{small_config(2), WeightMix::q4_k_m, 6};
  write_random_checkpoint(checkpoint, one, 1, {});
  write_random_checkpoint(checkpoint, three, 3, {});
  const MappedFile a(one), b(three);
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end()));
  std::filesystem::remove(one);
  std::filesystem::remove(three);
}

TEST(RandomCheckpoint, AutoregressiveSibling) {
  RandomCheckpoint checkpoint{small_config(2), WeightMix::q8_0, 7};
  checkpoint.config.canvas_length = 0;
  const auto path = std::filesystem::path(::testing::TempDir()) / "dgemma_random_gemma4.gguf";
  write_random_checkpoint(checkpoint, path, 1, {});
  EXPECT_EQ(Engine::open(path).config().canvas_length, 0);
  std::filesystem::remove(path);
  // Spec gguf.md 2.2: 658 tensors of 30 layers.
  checkpoint.config = diffusion_gemma_config(30);
  checkpoint.config.canvas_length = 0;
  EXPECT_EQ(random_tensors(checkpoint).size(), 658u);
}

// The full vocabulary: sizes of the real one (spec gguf.md 2.4), and text survives it.
TEST(MadeUpVocabulary, HasTheSizesOfTheRealOne) {
  const RandomCheckpoint checkpoint = [] {
    RandomCheckpoint out{small_config(1), WeightMix::q4_k_m, 8};
    out.config.vocabulary = 262144;
    return out;
  }();
  const auto path = std::filesystem::path(::testing::TempDir()) / "dgemma_random_vocabulary.gguf";
  write_random_checkpoint(checkpoint, path, 2, {});
  const GgufFile file = GgufFile::open(path);
  EXPECT_EQ(file.value("tokenizer.ggml.merges")->count, 514906u);
  EXPECT_EQ(file.value("tokenizer.ggml.tokens")->count, 262144u);
  const Engine engine = Engine::open(path);
  const Tokenizer& tokenizer = engine.tokenizer();
  EXPECT_EQ(tokenizer.size(), 262144);
  EXPECT_EQ(tokenizer.id_of("<turn|>"), 106);
  EXPECT_TRUE(tokenizer.is_byte(238));
  const std::string text = "Why is the sky blue?\n\n\u00e4 = 3";
  std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialTokens::plain);
  EXPECT_LT(ids.size(), text.size());  // merges are used
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace dgemma
