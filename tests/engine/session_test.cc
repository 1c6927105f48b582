#include "engine/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace dgemma {
namespace {

const std::string kTiny = std::string(DGEMMA_SOURCE_DIR) + "/tests/golden/tiny";

SessionSettings settings_of(const Engine& engine) {
  SessionSettings settings;
  settings.denoise = engine.defaults().denoise;
  settings.denoise.max_denoising_steps = 6;
  settings.max_tokens = 40;
  settings.seed = 11;
  return settings;
}

std::vector<std::int32_t> run(const Engine& engine, const SessionSettings& settings, int threads) {
  Context c(threads);
  Session session(engine, settings, {2, 105, 300, 17, 5, 5, 9, 44, 200, 201, 202, 203, 204, 205, 206});
  while (session.advance(c) != Progress::finished) continue;
  return {session.tokens().begin(), session.tokens().end()};
}

TEST(Session, SameSeedSameTokensOnAnyThreadsAndChunks) {
  const Engine engine = Engine::open(kTiny);
  SessionSettings settings = settings_of(engine);
  const std::vector<std::int32_t> expected = run(engine, settings, 1);
  EXPECT_EQ(expected, run(engine, settings, 8));
  settings.prefill_chunk = 4;
  EXPECT_EQ(expected, run(engine, settings, 2));
  settings.seed = 12;
  EXPECT_NE(expected, run(engine, settings, 2));
}

TEST(Session, MaxTokensIsExact) {
  const Engine engine = Engine::open(kTiny);
  SessionSettings settings = settings_of(engine);
  settings.stop_ids = {};
  for (const std::int64_t tokens : {1, 15, 16, 17, 40}) {
    settings.max_tokens = tokens;
    EXPECT_EQ(static_cast<std::int64_t>(run(engine, settings, 1).size()), tokens);
  }
}

TEST(Session, ShorterCanvasesOnly) {
  const Engine engine = Engine::open(kTiny);
  SessionSettings settings = settings_of(engine);
  settings.stop_ids = {};
  settings.canvas = 16;
  const std::vector<std::int32_t> whole = run(engine, settings, 1);
  settings.canvas = 0;
  EXPECT_EQ(whole, run(engine, settings, 1));
  for (const std::int64_t canvas : {-1, 17}) {
    settings.canvas = canvas;
    EXPECT_THROW(Session(engine, settings, {2}), Error);
  }
  Context c(1);
  for (const std::int64_t canvas : {1, 5}) {
    settings.canvas = canvas;
    Session session(engine, settings, {2, 105, 300});
    while (session.advance(c) != Progress::finished) continue;
    EXPECT_EQ(session.tokens().size(), 40u);
    EXPECT_EQ(session.work().decoder_rows, canvas * session.work().decoder_passes);
    EXPECT_EQ(session.work().encoder_passes, 40 / canvas);  // the prompt, and all canvases but the last
  }
}

TEST(Session, EndsWithTheFirstStopId) {
  const Engine engine = Engine::open(kTiny);
  SessionSettings settings = settings_of(engine);
  const std::vector<std::int32_t> all = run(engine, settings, 1);
  settings.stop_ids = {all[20]};
  const std::vector<std::int32_t> cut = run(engine, settings, 1);
  const auto first = std::find(all.begin(), all.end(), all[20]);
  EXPECT_EQ(cut, std::vector<std::int32_t>(all.begin(), first + 1));
}

TEST(Session, RefusesImpossiblePrompts) {
  const Engine engine = Engine::open(kTiny);
  const SessionSettings settings = settings_of(engine);
  EXPECT_THROW(Session(engine, settings, {}), Error);
  EXPECT_THROW(Session(engine, settings, {512}), Error);
  EXPECT_THROW(Session(engine, settings, {-1}), Error);
  SessionSettings small = settings;
  small.context = 3;
  EXPECT_THROW(Session(engine, small, {1, 2, 3}), Error);
}

// Greedy decoding with the cache equals encoding the whole prefix anew for every token.
TEST(Autoregressive, CachedEqualsFromScratch) {
  const Engine engine = Engine::open(kTiny);
  SessionSettings settings = settings_of(engine);
  settings.mode = Mode::autoregressive;
  settings.stop_ids = {};
  settings.max_tokens = 30;
  const std::vector<std::int32_t> prompt{2, 105, 300, 17, 5};
  Context c(2);
  Session session(engine, settings, prompt);
  while (session.advance(c) != Progress::finished) continue;
  ASSERT_EQ(session.tokens().size(), 30u);
  std::vector<std::int32_t> prefix = prompt;
  settings.max_tokens = 1;
  for (const std::int32_t id : session.tokens()) {
    Session fresh(engine, settings, prefix);
    while (fresh.advance(c) != Progress::finished) continue;
    ASSERT_EQ(fresh.tokens()[0], id);
    prefix.push_back(id);
  }
}

// The kept sets worked by hand: probabilities 0.5, 0.3, 0.15, 0.05.
TEST(TokenSampler, KeptSets) {
  std::vector<float> logits;
  for (const double p : {0.15, 0.5, 0.05, 0.3}) logits.push_back(static_cast<float>(std::log(p)));
  const auto at = [&](const TokenFilter& filter, double uniform) {
    return sample_token(logits, 1.0f, filter, uniform);
  };
  // In order of id: 0.15, 0.65, 0.7, 1.
  EXPECT_EQ(at({}, 0.14), 0);
  EXPECT_EQ(at({}, 0.64), 1);
  EXPECT_EQ(at({}, 0.69), 2);
  EXPECT_EQ(at({}, 0.71), 3);
  EXPECT_EQ(at({.top_k = 2}, 0.001), 1);
  EXPECT_EQ(at({.top_k = 2}, 0.62), 1);  // 0.5 / 0.8 = 0.625
  EXPECT_EQ(at({.top_k = 2}, 0.63), 3);
  EXPECT_EQ(at({.top_p = 0.7f}, 0.001), 1);
  EXPECT_EQ(at({.top_p = 0.7f}, 0.999), 3);
  EXPECT_EQ(at({.top_p = 0.49f}, 0.999), 1);
  EXPECT_EQ(at({.min_p = 0.25f}, 0.001), 0);
  EXPECT_EQ(at({.min_p = 0.35f}, 0.001), 1);
  EXPECT_EQ(sample_token(logits, 0.0f, {}, 0.999), 1);
  EXPECT_THROW(TokenFilter{.top_p = 0}.validate(), Error);
}

// Equations 7 to 10 on numbers worked by hand.
TEST(Metrics, WorkedExample) {
  const Metrics m = measure({{256, 12}, {256, 10}, {100, 4}});
  EXPECT_EQ(m.total_tokens, 612);
  EXPECT_EQ(m.denoising_steps, 26);
  EXPECT_DOUBLE_EQ(m.effective_denoising_steps, (256.0 * 12 + 256 * 10 + 100 * 4) / 612);
  EXPECT_DOUBLE_EQ(m.tokens_per_forward, 612.0 / 28);
}

TEST(GenerationConfig, ReadsTheTinyCheckpointsFile) {
  const Engine engine = Engine::open(kTiny);
  EXPECT_EQ(engine.defaults().stop_ids, (std::vector<std::int32_t>{1, 106, 50}));
  EXPECT_EQ(engine.defaults().denoise.max_denoising_steps, 8);
  EXPECT_EQ(engine.defaults().max_new_tokens, 48);
  EXPECT_THROW(parse_generation_config("{\"t_min\": \"x\"}"), Error);
  EXPECT_THROW(parse_generation_config("{\"t_min\": 0.9}"), Error);
  EXPECT_THROW(parse_generation_config("["), Error);
}

}  // namespace
}  // namespace dgemma
