// Statistics of the steps, with the counter-based random numbers a session uses.
#include "diffusion/sampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace dgemma {
namespace {

constexpr std::size_t kRows = 256;

StepNoise seeded(std::uint64_t seed, std::uint64_t stream, std::uint32_t vocabulary) {
  return {[=](std::int64_t i) {
            return static_cast<std::int32_t>(random_below(seed, stream, static_cast<std::uint64_t>(i), vocabulary));
          },
          [=](std::int64_t i) {
            return random_uniform(seed, stream, std::uint64_t{1} << 32 | static_cast<std::uint64_t>(i));
          }};
}

// Chi-square over 100 cells and 25,500 draws: 99 degrees of freedom, 99.99 % quantile 160.
TEST(EntropyBound, RenoisesUniformly) {
  constexpr std::uint32_t kVocabulary = 100;
  std::vector<RowPrediction> predictions(kRows, {-1, -1, 3.0f, 0});
  predictions[17].entropy = 2.0f;
  std::vector<int> count(kVocabulary, 0);
  int total = 0;
  for (std::uint64_t stream = 0; stream < 100; ++stream) {
    std::vector<std::int32_t> canvas(kRows, -2);
    std::vector<std::uint8_t> accepted(kRows);
    entropy_bound_step(0.1f)->apply(canvas, accepted, predictions, 1, seeded(5, stream, kVocabulary));
    for (std::size_t i = 0; i < kRows; ++i) {
      if (i == 17) {
        EXPECT_EQ(canvas[i], -1);
        continue;
      }
      ASSERT_TRUE(canvas[i] >= 0 && canvas[i] < 100);
      ++count[static_cast<std::size_t>(canvas[i])];
      ++total;
    }
  }
  const double expected = total / 100.0;
  double chi_square = 0;
  for (const int cell : count) chi_square += (cell - expected) * (cell - expected) / expected;
  EXPECT_EQ(total, 25500);
  EXPECT_LT(chi_square, 160);
  EXPECT_GT(chi_square, 54);  // the 0.01 % quantile is 55: no evener than chance
}

TEST(EntropyBound, SameSeedSameCanvas) {
  const std::vector<RowPrediction> predictions(kRows, {1, 2, 3.0f, 0});
  const auto run = [&](std::uint64_t seed) {
    std::vector<std::int32_t> canvas(kRows, 0);
    std::vector<std::uint8_t> accepted(kRows);
    entropy_bound_step(0.1f)->apply(canvas, accepted, predictions, 1, seeded(seed, 3, 262144));
    return canvas;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

// From n of N steps left to n - 1 a position keeps its noise with probability 1 - 1 / n, so that (n - 1) / N of the
// canvas is still noise: the forward process's own 1 - kappa_t (report, equation 1).
TEST(DiscreteEuler, FollowsTheForwardProcess) {
  constexpr int kSteps = 8, kRuns = 200;
  std::vector<int> noise_left(kSteps + 1, 0);
  const std::vector<RowPrediction> predictions(kRows, {0, 1, 0.5f, 0});
  const auto step = discrete_euler_step();
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::int32_t> canvas(kRows, 99);
    std::vector<std::uint8_t> accepted(kRows);
    for (int n = kSteps; n >= 1; --n) {
      const std::vector<std::int32_t> before = canvas;
      step->apply(canvas, accepted, predictions, n, seeded(9, static_cast<std::uint64_t>(run * kSteps + n), 100));
      for (std::size_t i = 0; i < kRows; ++i) {
        ASSERT_EQ(canvas[i], accepted[i] != 0 ? 1 : before[i]);
        noise_left[static_cast<std::size_t>(n - 1)] += canvas[i] == 99 ? 1 : 0;
      }
    }
  }
  for (int n = 0; n < kSteps; ++n) {
    const double share = noise_left[static_cast<std::size_t>(n)] / static_cast<double>(kRuns * kRows);
    EXPECT_NEAR(share, n / static_cast<double>(kSteps), 5 * 0.5 / std::sqrt(kRuns * kRows)) << n;
  }
  EXPECT_EQ(noise_left[0], 0);
}

}  // namespace
}  // namespace dgemma
