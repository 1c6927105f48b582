// bf16 weights: the same numbers as their float32 copies, and as close to the reference in bfloat16 as the reference in
// float32 is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/bits.h"
#include "format/safetensors.h"
#include "format/safetensors_writer.h"
#include "golden_file.h"
#include "model/bind.h"
#include "model/forward.h"
#include "model/hf_config.h"
#include "ops/head.h"

namespace dgemma {
namespace {

// First-step logits [rows, vocabulary] of every canvas behind the prompt.
std::vector<float> canvas_logits(const Checkpoint& checkpoint, const Checkpoint& golden) {
  ModelConfig config = config_from_hugging_face(read_text(kGolden + "tiny/config.json"));
  const Weights weights = bind(checkpoint, Naming::hugging_face, config);
  const auto prompt = golden_values<std::int32_t>(golden, "prompt_ids"),
             canvases = golden_values<std::int32_t>(golden, "canvas_ids");
  Context c(2);
  KvCache cache(config, 64);
  Activations a;
  const Pass encode({{Role::encoder, static_cast<std::int64_t>(prompt.size()), &cache}});
  embed_pass(c, config, weights, encode, prompt, {}, a);
  stack_forward(c, config, weights, encode, a);
  std::vector<float> out;
  for (std::size_t first = 0; first < canvases.size(); first += 16) {
    const Pass pass({{Role::decoder, 16, &cache}});
    embed_pass(c, config, weights, pass, std::span(canvases).subspan(first, 16), {}, a);
    stack_forward(c, config, weights, pass, a);
    Matrix normed, logits;
    const View n = normed.reshape(16, config.hidden), z = logits.reshape(16, config.vocabulary);
    final_norm(c, config, weights, n, a.slots().x);
    head_logits(c, z, n, weights.head, config.final_logit_softcapping);
    out.insert(out.end(), z.data, z.data + 16 * config.vocabulary);
  }
  return out;
}

TEST(Bf16, WeightsReadInBf16AndCloseToTheReference) {
  const SafetensorsFile exact = SafetensorsFile::open(kGolden + "tiny/model.safetensors");
  const SafetensorsFile golden = SafetensorsFile::open(kGolden + "bf16/tensors.safetensors");
  const std::filesystem::path copy = std::filesystem::path(testing::TempDir()) / "dgemma_tiny_bf16.safetensors";
  std::vector<std::vector<std::uint16_t>> halves;
  std::vector<TensorSource> sources;
  for (const TensorInfo& tensor : exact.tensors()) {
    std::vector<std::uint16_t>& half = halves.emplace_back();
    for (const float value : golden_values<float>(exact, tensor.name)) half.push_back(f32_to_bf16(value));
  }
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const TensorInfo& tensor = exact.tensors()[i];
    sources.push_back({tensor.name, DType::bf16, tensor.shape, [&, i] { return std::as_bytes(std::span(halves[i])); }});
  }
  write_safetensors(copy, sources);
  const SafetensorsFile rounded = SafetensorsFile::open(copy);
  const std::vector<float> ours = canvas_logits(rounded, golden);
  std::filesystem::remove(copy);
  EXPECT_EQ(ours, canvas_logits(exact, golden));  // every weight of the tiny checkpoint is exact in bf16

  const std::vector<float> reference = golden_values<float>(golden, "logits");
  ASSERT_EQ(ours.size(), reference.size());
  constexpr std::size_t kVocabulary = 512;
  const std::size_t rows = ours.size() / kVocabulary;
  double kl = 0, agreement = 0;
  const auto log_sum = [](const float* z) {
    double sum = 0;
    for (std::size_t v = 0; v < kVocabulary; ++v) sum += std::exp(double{z[v]});
    return std::log(sum);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    const float *q = &ours[row * kVocabulary], *p = &reference[row * kVocabulary];
    const double p_sum = log_sum(p), q_sum = log_sum(q);
    for (std::size_t v = 0; v < kVocabulary; ++v) kl += std::exp(p[v] - p_sum) * ((p[v] - p_sum) - (q[v] - q_sum));
    agreement += std::max_element(p, p + kVocabulary) - p == std::max_element(q, q + kVocabulary) - q ? 1 : 0;
  }
  const nlohmann::json spread =
      nlohmann::json::parse(read_text(kGolden + "bf16/case.json"))["float32_against_bfloat16"];
  const double n = static_cast<double>(rows);
  EXPECT_NEAR(kl / n, spread["mean_kl"].get<double>(), 0.02 * spread["mean_kl"].get<double>());
  EXPECT_NEAR(agreement / n, spread["top1_agreement"].get<double>(), 1.01 / n);
}

}  // namespace
}  // namespace dgemma
