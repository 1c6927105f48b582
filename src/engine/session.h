// One sequence being generated: a state machine with one method, advance(). Knows no terminal, no JSON and no other
// session.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "diffusion/canvas.h"
#include "diffusion/metrics.h"
#include "engine/engine.h"
#include "engine/token_sampler.h"
#include "model/forward.h"
#include "ops/context.h"
#include "ops/head.h"

namespace dgemma {

enum class Mode { diffusion, autoregressive };
enum class Sampler { entropy_bound, discrete_euler };

struct SessionSettings {
  Mode mode = Mode::diffusion;
  Sampler sampler = Sampler::entropy_bound;
  DenoiseSettings denoise;
  std::int64_t canvas = 0;           // tokens of a canvas, at most the checkpoint's number; 0: that
  std::int64_t max_tokens = 256;     // committed tokens, exact
  std::int64_t context = 4096;       // most positions of prompt and answer
  std::int64_t prefill_chunk = 512;  // prompt rows a pass; changes no result
  std::uint64_t seed = 0;
  TokenFilter filter;        // of what may be drawn, in both modes
  float ar_temperature = 0;  // autoregressive mode; 0: greedy
  bool noise_free = false;   // accepted positions take the argmax
  std::vector<std::int32_t> stop_ids;
};

enum class Progress {
  prompt_encoded,    // a chunk of the prompt is in the cache
  canvas_refined,    // one denoising step is done
  canvas_committed,  // tokens() grew by a canvas
  token_committed,   // tokens() grew by one token (autoregressive mode)
  finished,          // a stop id was committed, or max_tokens reached
};

class Session {
 public:
  // Throws bad_input when the prompt is empty, holds an id outside the vocabulary, or does not fit the context together
  // with one token, and when the canvas is longer than the checkpoint's; unsupported when the checkpoint has no decoder
  // role.
  Session(const Engine& engine, SessionSettings settings, std::vector<std::int32_t> prompt);

  Progress advance(Context& c);

  std::span<const std::int32_t> tokens() const { return tokens_; }  // committed, with the stop id when there is one
  std::int64_t prompt_rows_encoded() const { return encoded_; }
  const Canvas* canvas() const { return canvas_ ? &*canvas_ : nullptr; }
  Metrics metrics() const { return measure(records_); }
  const Work& work() const { return work_; }

 private:
  // `outputs`: how many of the last rows are read behind the last layer (model/pass.h).
  void encode(Context& c, std::span<const std::int32_t> ids, std::int64_t outputs);
  void start_canvas();
  void denoise(Context& c);
  Progress commit(Context& c);
  Progress decode_token(Context& c);
  std::uint64_t stream(std::uint64_t within_canvas) const;

  const Engine& engine_;
  SessionSettings settings_;
  std::vector<std::int32_t> prompt_, tokens_;
  std::int64_t encoded_ = 0;  // prompt rows in the cache
  KvCache cache_;
  Activations activations_;
  std::optional<Canvas> canvas_;
  std::unique_ptr<Step> step_;
  Matrix normed_, signal_, logits_;
  HeadBuffers head_buffers_;
  std::vector<RowPrediction> predictions_;
  std::vector<CanvasRecord> records_;
  Work work_;
  bool finished_ = false;
};

}  // namespace dgemma
