// The report's measures of a generation (section 3.4, equations 7 to 10), and what it took.
#pragma once

#include <cstdint>
#include <vector>

namespace dgemma {

struct CanvasRecord {
  std::int64_t tokens = 0;  // C_k: valid tokens of the canvas, its stop id included
  std::int64_t steps = 0;   // N_k: denoising steps spent on it
};

struct Metrics {
  std::int64_t total_tokens = 0;         // equation 7
  std::int64_t denoising_steps = 0;      // equation 8
  double effective_denoising_steps = 0;  // equation 9: token-weighted mean of N_k
  double tokens_per_forward = 0;         // equation 10: the K - 1 encodings of finished canvases count as forwards
};

// Passes over the layers with their rows, and the rows for which work that nobody reads was left out
// (docs/performance.md, Work left out).
struct Work {
  std::int64_t encoder_passes = 0, encoder_rows = 0;  // prompt, committed canvases, autoregressive tokens
  std::int64_t decoder_passes = 0, decoder_rows = 0;  // denoising steps
  std::int64_t unread_rows = 0;     // of the encoder's: without logits, and of the last layer keys and values only
  std::int64_t last_step_rows = 0;  // of the decoder's: without a soft embedding, since no step can follow
};

Metrics measure(const std::vector<CanvasRecord>& canvases);

}  // namespace dgemma
