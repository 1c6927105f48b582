#include "diffusion/metrics.h"

namespace dgemma {

Metrics measure(const std::vector<CanvasRecord>& canvases) {
  Metrics m;
  std::int64_t weighted = 0;
  for (const CanvasRecord& canvas : canvases) {
    m.total_tokens += canvas.tokens;
    m.denoising_steps += canvas.steps;
    weighted += canvas.steps * canvas.tokens;
  }
  if (m.total_tokens > 0)
    m.effective_denoising_steps = static_cast<double>(weighted) / static_cast<double>(m.total_tokens);
  const std::int64_t forwards = m.denoising_steps + static_cast<std::int64_t>(canvases.size()) - 1;
  if (forwards > 0) m.tokens_per_forward = static_cast<double>(m.total_tokens) / static_cast<double>(forwards);
  return m;
}

}  // namespace dgemma
