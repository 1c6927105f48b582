// A session leaves out what nobody reads: the encoder's last layer behind keys and values, the head on its rows, the
// soft embedding of a canvas's last step, the encoding of the last canvas. Here the same generation leaves nothing out
// and must see the same bits at every step.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "base/random.h"
#include "engine/convert_gguf.h"
#include "engine/session.h"
#include "ops/elementwise.h"

namespace dgemma {
namespace {

const std::string kTiny = std::string(DGEMMA_SOURCE_DIR) + "/tests/golden/tiny";
const std::vector<std::int32_t> kPrompt{2, 105, 300, 17, 5, 5, 9, 44, 200, 201, 202, 203, 204, 205, 206};

struct Generation {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<RowPrediction>> steps;
};

class PlainGeneration {
 public:
  PlainGeneration(Context& c, const Engine& engine, const SessionSettings& settings)
      : c_(c), engine_(engine), settings_(settings), cache_(engine.config(), 256) {}

  Generation run() {
    encode(kPrompt);
    for (std::uint64_t canvas = 0;; ++canvas) {
      const std::vector<std::int32_t> best = denoise(canvas << 32);
      for (std::size_t i = 0; i < best.size(); ++i) {
        result_.tokens.push_back(best[i]);
        const bool stop = first_stop(std::span(best).subspan(i, 1), settings_.stop_ids) == 0;
        if (stop || static_cast<std::int64_t>(result_.tokens.size()) == settings_.max_tokens) return result_;
      }
      encode(best);
    }
  }

 private:
  // Final norm and head over all rows of x, with soft embedding.
  std::vector<RowPrediction> predict(float temperature, std::uint64_t stream) {
    const ModelConfig& config = engine_.config();
    const View x = activations_.slots().x;
    const View normed = normed_.reshape(x.rows, config.hidden);
    signal_view_ = signal_.reshape(x.rows, config.hidden);
    final_norm(c_, config, engine_.weights(), normed, x);
    std::vector<RowPrediction> predictions(static_cast<std::size_t>(x.rows));
    std::vector<RowDraw> draws;
    for (std::uint64_t i = 0; i < predictions.size(); ++i) draws.push_back({temperature, settings_.seed, stream, i});
    head_predict(c_, predictions, signal_view_, normed, engine_.weights().head, config.final_logit_softcapping, draws,
                 settings_.filter, buffers_);
    scale_rows(c_, signal_view_, std::vector<float>(predictions.size(), config.embedding_scale));
    return predictions;
  }

  void encode(std::span<const std::int32_t> ids) {
    const Pass pass({{Role::encoder, static_cast<std::int64_t>(ids.size()), &cache_}});
    embed_pass(c_, engine_.config(), engine_.weights(), pass, ids, {}, activations_);
    stack_forward(c_, engine_.config(), engine_.weights(), pass, activations_);
    ASSERT_EQ(predict(1, 0).size(), ids.size());
  }

  std::vector<std::int32_t> denoise(std::uint64_t streams) {
    const auto vocabulary = static_cast<std::uint32_t>(engine_.config().vocabulary);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < engine_.config().canvas_length; ++i)
      ids.push_back(static_cast<std::int32_t>(
          random_below(settings_.seed, streams | 0xffffffff, static_cast<std::uint64_t>(i), vocabulary)));
    Canvas canvas(settings_.denoise, ids);
    const auto step = entropy_bound_step(settings_.denoise.entropy_bound);
    signal_view_ = signal_.reshape(engine_.config().canvas_length, engine_.config().hidden);
    std::fill_n(signal_view_.data, signal_view_.rows * signal_view_.cols, 0.0f);
    while (!canvas.done()) {
      const std::uint64_t stream = streams | static_cast<std::uint64_t>(canvas.steps_done()) << 1;
      const Pass pass({{Role::decoder, engine_.config().canvas_length, &cache_}});
      embed_pass(c_, engine_.config(), engine_.weights(), pass, canvas.ids(), signal_view_, activations_);
      stack_forward(c_, engine_.config(), engine_.weights(), pass, activations_);
      result_.steps.push_back(predict(canvas.temperature(), stream));
      const auto token = [&](std::int64_t i) {
        return static_cast<std::int32_t>(
            random_below(settings_.seed, stream | 1, static_cast<std::uint64_t>(i), vocabulary));
      };
      canvas.advance(result_.steps.back(), *step, {token, {}});
    }
    return {canvas.best().begin(), canvas.best().end()};
  }

  Context& c_;
  const Engine& engine_;
  const SessionSettings& settings_;
  KvCache cache_;
  Activations activations_;
  Matrix normed_, signal_;
  View signal_view_;
  HeadBuffers buffers_;
  Generation result_;
};

// Returns the number of steps.
std::size_t expect_same(Context& c, const Engine& engine, const SessionSettings& settings) {
  const Generation expected = PlainGeneration(c, engine, settings).run();
  Session session(engine, settings, kPrompt);
  std::size_t step = 0;
  for (Progress progress = session.advance(c); progress != Progress::finished; progress = session.advance(c)) {
    if (progress != Progress::canvas_refined) continue;
    const std::span<const RowPrediction> found = session.canvas()->predictions();
    if (step == expected.steps.size() || found.size() != expected.steps[step].size()) {
      ADD_FAILURE() << "step " << step << " is not in the plain generation";
      break;
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      const RowPrediction& row = expected.steps[step][i];
      EXPECT_EQ(std::tie(found[i].argmax, found[i].sample, found[i].entropy, found[i].confidence),
                std::tie(row.argmax, row.sample, row.entropy, row.confidence))
          << "step " << step << " position " << i;
    }
    ++step;
  }
  EXPECT_EQ(step, expected.steps.size());
  EXPECT_EQ(expected.tokens, std::vector<std::int32_t>(session.tokens().begin(), session.tokens().end()));
  return step;
}

// Canvases that end at the step limit, and (cold) by the stability and confidence rule.
std::vector<SessionSettings> both_endings() {
  SessionSettings warm;
  warm.denoise.max_denoising_steps = 5;
  warm.denoise.entropy_bound = 0.5f;
  warm.max_tokens = 40;  // two canvases of 16 and half of a third
  warm.prefill_chunk = 6;
  warm.seed = 11;
  SessionSettings cold = warm;
  cold.denoise = {12, 0.02f, 0.05f, 0.5f, 1, 0.05f};
  return {warm, cold};
}

TEST(Avoided, GenerationThatLeavesNothingOutIsTheSame) {
  const Engine engine = Engine::open(kTiny);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Context c(2, precision);
    const std::vector<SessionSettings> settings = both_endings();
    EXPECT_EQ(expect_same(c, engine, settings[0]), 15u);
    EXPECT_LT(expect_same(c, engine, settings[1]), 36u);
  }
}

TEST(Avoided, AlsoInInt8) {
  GgufOutput output;
  output.path = std::filesystem::path(testing::TempDir()) / "dgemma_avoided_q8_0.gguf";
  output.mix = WeightMix::q8_0;
  convert_to_gguf(kTiny, {"tiny", true}, output);
  const Engine engine = Engine::open(output.path);
  Context c(2, Precision::int8);
  for (const SessionSettings& settings : both_endings()) expect_same(c, engine, settings);
  std::filesystem::remove(output.path);
}

TEST(Avoided, IsCounted) {
  const Engine engine = Engine::open(kTiny);
  Context c(1);
  SessionSettings settings = both_endings()[0];
  const auto work_of = [&] {
    Session session(engine, settings, kPrompt);
    while (session.advance(c) != Progress::finished) continue;
    return session.work();
  };
  const Work diffusion = work_of();  // a prompt of 15 in chunks of 6, two committed canvases; three canvases of 5 steps
  EXPECT_EQ(diffusion.encoder_passes, 5);
  EXPECT_EQ(diffusion.encoder_rows, 47);
  EXPECT_EQ(diffusion.unread_rows, 47);
  EXPECT_EQ(diffusion.decoder_passes, 15);
  EXPECT_EQ(diffusion.decoder_rows, 240);
  EXPECT_EQ(diffusion.last_step_rows, 48);
  settings.mode = Mode::autoregressive;
  settings.max_tokens = 7;
  const Work autoregressive = work_of();
  EXPECT_EQ(autoregressive.encoder_passes, 9);
  EXPECT_EQ(autoregressive.encoder_rows, 21);
  EXPECT_EQ(autoregressive.unread_rows, 14);
  EXPECT_EQ(autoregressive.decoder_rows, 0);
  EXPECT_EQ(autoregressive.last_step_rows, 0);
}

}  // namespace
}  // namespace dgemma
