#include "model/slots.h"

namespace dgemma {

Slots& Activations::place(const ModelConfig& config, const LayerConfig& layer, std::int64_t rows) {
  slots_.x = x_.reshape(rows, config.hidden);
  slots_.normed = normed_.reshape(rows, config.hidden);
  slots_.q = q_.reshape(rows, layer.heads * layer.head_dim);
  slots_.k = k_.reshape(rows, layer.kv_heads * layer.head_dim);
  slots_.v = v_.reshape(rows, layer.kv_heads * layer.head_dim);
  slots_.attn = attn_.reshape(rows, layer.heads * layer.head_dim);
  slots_.mid = mid_.reshape(rows, config.hidden);
  slots_.branch = branch_.reshape(rows, config.hidden);
  slots_.gate = gate_.reshape(rows, config.intermediate);
  slots_.up = up_.reshape(rows, config.intermediate);
  slots_.dense = dense_.reshape(rows, config.hidden);
  if (config.experts > 0) {
    slots_.router_logits = router_logits_.reshape(rows, config.experts);
    slots_.moe = moe_.reshape(rows, config.hidden);
  }
  return slots_;
}

}  // namespace dgemma
