#include "diffusion/metrics.h"

#include <gtest/gtest.h>

namespace dgemma {
namespace {

// Report equations 7 to 10, worked by hand: (10 * 256 + 14 * 256 + 4 * 100) / 612 and 612 / (28 + 2).
TEST(Metrics, EquationsByHand) {
  const Metrics m = measure({{256, 10}, {256, 14}, {100, 4}});
  EXPECT_EQ(m.total_tokens, 612);
  EXPECT_EQ(m.denoising_steps, 28);
  EXPECT_DOUBLE_EQ(m.effective_denoising_steps, 6544.0 / 612.0);
  EXPECT_DOUBLE_EQ(m.tokens_per_forward, 20.4);
}

// "Without adaptive stopping, the Effective Denoising Steps metric always reduces to the denoising budget N."
TEST(Metrics, WithoutStoppingEffectiveStepsAreTheBudget) {
  EXPECT_DOUBLE_EQ(measure({{256, 48}, {3, 48}}).effective_denoising_steps, 48.0);
}

TEST(Metrics, OneCanvasHasNoExtraForwardAndNoneIsZero) {
  EXPECT_DOUBLE_EQ(measure({{256, 16}}).tokens_per_forward, 16.0);
  const Metrics none = measure({});
  EXPECT_EQ(none.total_tokens, 0);
  EXPECT_EQ(none.effective_denoising_steps, 0.0);
  EXPECT_EQ(none.tokens_per_forward, 0.0);
}

}  // namespace
}  // namespace dgemma
