#include "diffusion/canvas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"

namespace dgemma {
namespace {

StepNoise counting_noise() {
  return {[](std::int64_t position) { return static_cast<std::int32_t>(1000 + position); },
          [](std::int64_t) { return 0.5; }};
}

std::vector<RowPrediction> rows(const std::vector<float>& entropies) {
  std::vector<RowPrediction> out;
  for (std::size_t i = 0; i < entropies.size(); ++i) {
    out.push_back({static_cast<std::int32_t>(10 + i), static_cast<std::int32_t>(20 + i), entropies[i], 0.5f});
  }
  return out;
}

// The reference's own unit facts (spec architecture.md section 10): bound 0.01 accepts 2 positions, bound 0.1
// accepts 3.
TEST(EntropyBound, ReferenceUnitFacts) {
  const std::vector<float> entropies{2.9e-3f, 7.8e-2f, 7.8e-2f, std::log(10000.0f), std::log(10000.0f)};
  for (const auto& [bound, count] : {std::pair{0.01f, 2}, {0.1f, 3}}) {
    std::vector<std::int32_t> canvas(5, 0);
    std::vector<std::uint8_t> accepted(5);
    entropy_bound_step(bound)->apply(canvas, accepted, rows(entropies), 1, counting_noise());
    EXPECT_EQ(std::accumulate(accepted.begin(), accepted.end(), 0), count);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(canvas[i], accepted[i] ? 20 + i : 1000 + i);
  }
}

// By definition: position i is accepted when the entropies strictly before it in the ranking sum to at most the bound.
TEST(EntropyBound, EqualsTheDefinitionOnRandomEntropies) {
  std::mt19937 generator(3);
  std::exponential_distribution<float> draw(20.0f);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> entropies(64);
    for (float& entropy : entropies) entropy = draw(generator);
    std::vector<std::int32_t> canvas(64, 0);
    std::vector<std::uint8_t> accepted(64);
    entropy_bound_step(0.1f)->apply(canvas, accepted, rows(entropies), 1, counting_noise());
    for (int i = 0; i < 64; ++i) {
      double before = 0;
      for (int j = 0; j < 64; ++j) before += entropies[j] < entropies[i] ? double{entropies[j]} : 0.0;
      if (std::abs(before - 0.1) > 1e-6) {
        EXPECT_EQ(accepted[i] != 0, before <= 0.1);
      }
    }
  }
}

TEST(EntropyBound, TheSurestPositionIsAlwaysAccepted) {
  std::vector<std::int32_t> canvas(3, 0);
  std::vector<std::uint8_t> accepted(3);
  entropy_bound_step(0.1f)->apply(canvas, accepted, rows({9.0f, 8.0f, 9.5f}), 1, counting_noise());
  EXPECT_EQ(accepted, (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(Schedule, ReferenceTemperatures) {
  const DenoiseSettings settings;
  EXPECT_FLOAT_EQ(temperature(settings, 48), 0.8f);
  EXPECT_FLOAT_EQ(temperature(settings, 24), 0.6f);
  EXPECT_NEAR(temperature(settings, 1), 0.40833f, 1e-5);
}

TEST(Schedule, RefusesWhatTheReferenceRefuses) {
  for (const auto change :
       {+[](DenoiseSettings& s) { s.max_denoising_steps = 0; }, +[](DenoiseSettings& s) { s.t_min = -1; },
        +[](DenoiseSettings& s) { s.t_max = s.t_min; }, +[](DenoiseSettings& s) { s.entropy_bound = 0; },
        +[](DenoiseSettings& s) { s.stability_threshold = -1; },
        +[](DenoiseSettings& s) { s.confidence_threshold = 0; }, +[](DenoiseSettings& s) { s.t_min = NAN; }}) {
    DenoiseSettings settings;
    change(settings);
    EXPECT_THROW(settings.validate(), Error);
  }
}

// Steps until done when the argmax changes at the steps in `changes` and the mean entropy is `entropy` throughout.
int steps_until_done(int stability, float entropy, std::vector<int> changes) {
  DenoiseSettings settings;
  settings.max_denoising_steps = 12;
  settings.stability_threshold = stability;
  Canvas canvas(settings, {1, 2, 3, 4});
  const auto step = entropy_bound_step(settings.entropy_bound);
  int shift = 0;
  while (!canvas.done()) {
    for (const int change : changes) shift += change == canvas.steps_done() ? 1 : 0;
    std::vector<RowPrediction> predictions = rows(std::vector<float>(4, entropy));
    predictions[2].argmax += shift;
    canvas.advance(predictions, *step, counting_noise());
    EXPECT_EQ(canvas.best()[2], 12 + shift);
  }
  return canvas.steps_done();
}

// Section 3.4: with threshold 1 the earliest stop is the second step; with 0 the first; k needs k + 1 equal canvases.
TEST(Stopping, TruthTable) {
  EXPECT_EQ(steps_until_done(1, 0.001f, {}), 2);
  EXPECT_EQ(steps_until_done(0, 0.001f, {}), 1);
  EXPECT_EQ(steps_until_done(3, 0.001f, {}), 4);
  EXPECT_EQ(steps_until_done(1, 0.001f, {1}), 3);
  EXPECT_EQ(steps_until_done(2, 0.001f, {1, 3}), 6);
  EXPECT_EQ(steps_until_done(1, 0.006f, {}), 12);
  EXPECT_EQ(steps_until_done(1, 0.005f, {}), 12);  // strict
}

TEST(Stops, FirstStopOrEnd) {
  const std::vector<std::int32_t> ids{5, 106, 7, 1}, stops{1, 106, 50};
  EXPECT_EQ(first_stop(ids, stops), 1u);
  EXPECT_EQ(first_stop(std::span(ids).first(1), stops), 1u);
}

}  // namespace
}  // namespace dgemma
