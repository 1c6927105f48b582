#include "engine/session.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "ops/elementwise.h"

namespace dgemma {
namespace {

// Streams of random numbers, part of the meaning of a seed (tools/reference/recorded_generation.py uses the same ones):
// each canvas has 2^32; step s draws tokens from stream 2 s and noises from stream 2 s + 1; the last one fills the
// first working canvas.
constexpr std::uint64_t kFirstCanvas = 0xffffffff;

}  // namespace

Session::Session(const Engine& engine, SessionSettings settings, std::vector<std::int32_t> prompt)
    : engine_(engine),
      settings_(std::move(settings)),
      prompt_(std::move(prompt)),
      cache_(engine.config(), settings_.context),
      step_(settings_.sampler == Sampler::discrete_euler ? discrete_euler_step()
                                                         : entropy_bound_step(settings_.denoise.entropy_bound)) {
  const ModelConfig& config = engine.config();
  if (settings_.mode == Mode::diffusion && config.canvas_length == 0) {
    fail(ErrorKind::unsupported,
         "the checkpoint is autoregressive: it has no canvas and no self-conditioning weights; use --mode ar");
  }
  if (settings_.mode == Mode::diffusion) {
    if (settings_.canvas == 0) settings_.canvas = config.canvas_length;
    if (settings_.canvas < 1 || settings_.canvas > config.canvas_length) {
      bad_input("a canvas of {} tokens is impossible: the checkpoint has 1 .. {}", settings_.canvas,
                config.canvas_length);
    }
  }
  settings_.denoise.validate();
  settings_.filter.validate();
  if (!(settings_.ar_temperature >= 0 && settings_.ar_temperature <= 100)) {
    bad_input("temperature must be 0 .. 100, found {}", settings_.ar_temperature);
  }
  if (prompt_.empty()) bad_input("the prompt is empty: at least one token is needed");
  for (const std::int32_t id : prompt_) {
    if (id < 0 || id >= config.vocabulary) {
      bad_input("the prompt holds token {}, the vocabulary has 0 .. {}", id, config.vocabulary - 1);
    }
  }
  if (settings_.context < 1 || settings_.context > config.max_positions) {
    bad_input("a context of {} positions is impossible: the model has 1 .. {}", settings_.context,
              config.max_positions);
  }
  if (static_cast<std::int64_t>(prompt_.size()) >= settings_.context) {
    bad_input("the prompt has {} tokens, the context only {}; raise -c or shorten the prompt", prompt_.size(),
              settings_.context);
  }
  if (settings_.max_tokens < 1) bad_input("max_tokens must be at least 1, found {}", settings_.max_tokens);
  if (settings_.prefill_chunk < 1) bad_input("the prefill chunk must be at least 1, found {}", settings_.prefill_chunk);
  settings_.max_tokens = std::min(settings_.max_tokens, settings_.context - static_cast<std::int64_t>(prompt_.size()));
}

std::uint64_t Session::stream(std::uint64_t within_canvas) const {
  return static_cast<std::uint64_t>(records_.size()) << 32 | within_canvas;
}

Progress Session::advance(Context& c) {
  if (finished_) return Progress::finished;
  if (encoded_ < static_cast<std::int64_t>(prompt_.size())) {
    const std::int64_t count = std::min(settings_.prefill_chunk, static_cast<std::int64_t>(prompt_.size()) - encoded_);
    const std::span ids = std::span(prompt_).subspan(static_cast<std::size_t>(encoded_));
    encoded_ += count;
    // A token follows the prompt's last row in autoregressive mode; a canvas reads keys and values only.
    const bool read = settings_.mode == Mode::autoregressive && encoded_ == static_cast<std::int64_t>(prompt_.size());
    encode(c, ids.first(static_cast<std::size_t>(count)), read ? 1 : 0);
    return Progress::prompt_encoded;
  }
  if (settings_.mode == Mode::autoregressive) return decode_token(c);
  if (!canvas_) start_canvas();
  if (!canvas_->done()) {
    denoise(c);
    return Progress::canvas_refined;
  }
  return commit(c);
}

void Session::encode(Context& c, std::span<const std::int32_t> ids, std::int64_t outputs) {
  const Pass pass({{Role::encoder, static_cast<std::int64_t>(ids.size()), &cache_, outputs}});
  embed_pass(c, engine_.config(), engine_.weights(), pass, ids, {}, activations_);
  stack_forward(c, engine_.config(), engine_.weights(), pass, activations_);
  ++work_.encoder_passes;
  work_.encoder_rows += pass.rows();
  work_.unread_rows += pass.rows() - outputs;
}

void Session::start_canvas() {
  const auto vocabulary = static_cast<std::uint32_t>(engine_.config().vocabulary);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(settings_.canvas));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(random_below(settings_.seed, stream(kFirstCanvas), i, vocabulary));
  }
  canvas_.emplace(settings_.denoise, std::move(ids));
}

void Session::denoise(Context& c) {
  const ModelConfig& config = engine_.config();
  const Weights& weights = engine_.weights();
  const std::int64_t rows = settings_.canvas;
  const View normed = normed_.reshape(rows, config.hidden), signal = signal_.reshape(rows, config.hidden);

  const Pass pass({{Role::decoder, rows, &cache_}});
  embed_pass(c, config, weights, pass, canvas_->ids(), canvas_->steps_done() == 0 ? View{} : signal, activations_);
  stack_forward(c, config, weights, pass, activations_);
  final_norm(c, config, weights, normed, activations_.slots().x);

  predictions_.resize(static_cast<std::size_t>(rows));
  const std::uint64_t draw_stream = stream(static_cast<std::uint64_t>(canvas_->steps_done()) << 1);
  std::vector<RowDraw> draws(predictions_.size());
  for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = {canvas_->temperature(), settings_.seed, draw_stream, i};
  // Only a next step reads the soft embedding. (That confidence ends a canvas is known too late: after the head.)
  const bool last = canvas_->steps_left() == 1;
  head_predict(c, predictions_, last ? View{} : signal, normed, weights.head, config.final_logit_softcapping, draws,
               settings_.filter, head_buffers_);
  if (!last) scale_rows(c, signal, std::vector<float>(predictions_.size(), config.embedding_scale));
  ++work_.decoder_passes;
  work_.decoder_rows += rows;
  work_.last_step_rows += last ? rows : 0;
  if (settings_.noise_free) {
    for (RowPrediction& prediction : predictions_) prediction.sample = prediction.argmax;
  }

  const std::uint64_t noise_stream = draw_stream | 1;
  const auto token = [&](std::int64_t i) {
    return static_cast<std::int32_t>(random_below(settings_.seed, noise_stream, static_cast<std::uint64_t>(i),
                                                  static_cast<std::uint32_t>(config.vocabulary)));
  };
  const auto uniform = [&](std::int64_t i) {
    return random_uniform(settings_.seed, noise_stream, std::uint64_t{1} << 32 | static_cast<std::uint64_t>(i));
  };
  canvas_->advance(predictions_, *step_, {token, uniform});
}

Progress Session::commit(Context& c) {
  const std::span<const std::int32_t> best = canvas_->best();
  const std::size_t stop = first_stop(best, settings_.stop_ids);
  const auto left = static_cast<std::size_t>(settings_.max_tokens - static_cast<std::int64_t>(tokens_.size()));
  const std::size_t count = std::min({best.size(), stop + 1, left});
  tokens_.insert(tokens_.end(), best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count));
  finished_ = stop < count || count == left;
  records_.push_back({static_cast<std::int64_t>(count), canvas_->steps_done()});
  // The last canvas is never encoded: nothing reads it.
  if (!finished_) encode(c, best, 0);
  if (finished_) return Progress::finished;
  canvas_.reset();
  return Progress::canvas_committed;
}

// One token: the last prompt row's logits are there when the prompt is encoded; a committed token is encoded before the
// next one.
Progress Session::decode_token(Context& c) {
  const ModelConfig& config = engine_.config();
  if (!tokens_.empty()) encode(c, std::span(tokens_).last(1), 1);
  const View normed = normed_.reshape(1, config.hidden), logits = logits_.reshape(1, config.vocabulary);
  final_norm(c, config, engine_.weights(), normed, activations_.slots().x);
  head_logits(c, logits, normed, engine_.weights().head, config.final_logit_softcapping);
  const double uniform = random_uniform(settings_.seed, 0, tokens_.size());
  const std::int32_t id = sample_token({logits.data, static_cast<std::size_t>(logits.cols)}, settings_.ar_temperature,
                                       settings_.filter, uniform);
  tokens_.push_back(id);
  const bool stop = std::find(settings_.stop_ids.begin(), settings_.stop_ids.end(), id) != settings_.stop_ids.end();
  finished_ = stop || static_cast<std::int64_t>(tokens_.size()) == settings_.max_tokens;
  return finished_ ? Progress::finished : Progress::token_committed;
}

}  // namespace dgemma
