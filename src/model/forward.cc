#include "model/forward.h"

#include <algorithm>
#include <vector>

#include "ops/elementwise.h"
#include "ops/linear.h"

namespace dgemma {
namespace {

// Keys that each of the last `count` rows of a segment sees, counted from the oldest cached one: causal for the
// encoder, everything for the decoder; sliding layers reach window - 1 positions back (spec 2.6, 2.7).
std::vector<KeyRange> key_ranges(const Segment& segment, std::int64_t count, std::int64_t cached, std::int64_t window) {
  std::vector<KeyRange> ranges;
  for (std::int64_t i = segment.rows - count; i < segment.rows; ++i) {
    if (segment.role == Role::decoder) {
      ranges.push_back({0, cached + segment.rows});
    } else {
      ranges.push_back({window > 0 ? std::max<std::int64_t>(0, cached + i - (window - 1)) : 0, cached + i + 1});
    }
  }
  return ranges;
}

// A segment's rows behind keys and values: all of them, in the last layer those whose output is read (spec 2.10).
std::int64_t rows_kept(const Segment& segment, bool last) { return last ? segment.outputs : segment.rows; }

// `keys`, `values`: of all rows of the pass; q and attn in `s`: of those kept.
void attend(Context& c, const ModelConfig& config, std::size_t index, const Pass& pass, View keys, View values,
            const Slots& s) {
  const LayerConfig& layer = config.layers[index];
  std::int64_t row = 0, kept_row = 0;
  for (const Segment& segment : pass.segments()) {
    const std::int64_t kept = rows_kept(segment, index + 1 == config.layers.size());
    const View k = keys.slice(row, segment.rows), v = values.slice(row, segment.rows);
    std::vector<KeyPiece> pieces = segment.cache->pieces(index);
    std::int64_t cached = 0;
    for (const KeyPiece& piece : pieces) cached += piece.k.rows;
    pieces.push_back({k, v});
    if (kept > 0) {
      attention(c, s.attn.slice(kept_row, kept), s.q.slice(kept_row, kept), pieces, segment.cache->length() - cached,
                key_ranges(segment, kept, cached, layer.sliding ? config.sliding_window : 0), layer.head_dim,
                config.attention_scale);
    }
    row += segment.rows;
    kept_row += kept;
  }
}

// Puts the encoder rows' keys and values into their caches. (After attention: a ring loses its oldest rows.)
void append(std::size_t index, const Pass& pass, View keys, View values) {
  std::int64_t row = 0;
  for (const Segment& segment : pass.segments()) {
    if (segment.role == Role::encoder)
      segment.cache->append(index, keys.slice(row, segment.rows), values.slice(row, segment.rows));
    row += segment.rows;
  }
}

void gated_mlp(Context& c, const GatedMlp& w, View out, View x, View gate, View up) {
  linear(c, gate, x, w.gate);
  linear(c, up, x, w.up);
  geglu(c, gate, gate, up);
  linear(c, out, gate, w.down);
}

// One scalar a kept row: the encoder's or the decoder's (spec 2.4).
std::vector<float> row_scalars(const Layer& w, const Pass& pass, bool last) {
  std::vector<float> scalars;
  for (const Segment& segment : pass.segments()) {
    scalars.insert(scalars.end(), static_cast<std::size_t>(rows_kept(segment, last)),
                   segment.role == Role::encoder ? w.encoder_scalar : w.decoder_scalar);
  }
  return scalars;
}

// Moves the given rows, ascending, to the front.
void keep_rows(View x, std::span<const std::int64_t> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto to = static_cast<std::int64_t>(i);
    if (rows[i] != to) std::copy_n(x.row(rows[i]), x.cols, x.row(to));
  }
}

void layer_forward(Context& c, const ModelConfig& config, std::size_t index, const Layer& w, const Pass& pass,
                   Activations& activations) {
  const LayerConfig& layer = config.layers[index];
  const float eps = config.rms_norm_eps;
  const bool last = index + 1 == config.layers.size();
  const Slots& s = activations.place(config, layer, pass.rows());

  rms_norm(c, s.normed, s.x, w.input_norm, eps);
  linear(c, s.k, s.normed, w.k);
  if (w.v) {
    linear(c, s.v, s.normed, w.v);
  } else {
    for (std::int64_t i = 0; i < s.k.rows; ++i) std::copy_n(s.k.row(i), s.k.cols, s.v.row(i));
  }
  rms_norm(c, s.k, s.k, w.k_norm, eps);
  if (config.value_norm) rms_norm_unit(c, s.v, s.v, layer.head_dim, eps);
  rope(c, s.k, pass.positions(), w.rope_frequencies);
  const View k = s.k, v = s.v;
  if (last) {  // from here on only rows that are read
    keep_rows(s.x, pass.output_rows());
    keep_rows(s.normed, pass.output_rows());
    activations.place(config, layer, static_cast<std::int64_t>(pass.output_rows().size()));
  }
  if (s.x.rows == 0) return append(index, pass, k, v);
  linear(c, s.q, s.normed, w.q);
  rms_norm(c, s.q, s.q, w.q_norm, eps);
  rope(c, s.q, last ? pass.output_positions() : pass.positions(), w.rope_frequencies);
  attend(c, config, index, pass, k, v, s);
  append(index, pass, k, v);
  linear(c, s.branch, s.attn, w.o);
  rms_norm(c, s.branch, s.branch, w.post_attention_norm, eps);
  add(c, s.mid, s.x, s.branch);

  rms_norm(c, s.normed, s.mid, w.pre_feedforward_norm, eps);
  gated_mlp(c, w.dense, s.dense, s.normed, s.gate, s.up);
  if (w.experts) {
    const ExpertBranch& e = *w.experts;
    rms_norm(c, s.dense, s.dense, e.dense_post_norm, eps);
    // The router reads the residual stream itself, under a norm of its own: unit RMS, then router_scale.
    rms_norm(c, s.normed, s.mid, e.router_scale, eps);
    linear(c, s.router_logits, s.normed, e.router);
    route(activations.routing, s.router_logits, config.experts_used, e.per_expert_scale);
    rms_norm(c, s.normed, s.mid, e.pre_norm, eps);
    experts(c, s.moe, s.normed, activations.routing, e.experts, activations.expert_buffers);
    rms_norm(c, s.moe, s.moe, e.post_norm, eps);
    add(c, s.branch, s.dense, s.moe);
    rms_norm(c, s.branch, s.branch, w.post_feedforward_norm, eps);
  } else {
    rms_norm(c, s.branch, s.dense, w.post_feedforward_norm, eps);
  }
  add(c, s.x, s.mid, s.branch);
  scale_rows(c, s.x, row_scalars(w, pass, last));
}

}  // namespace

void embed_pass(Context& c, const ModelConfig& config, const Weights& weights, const Pass& pass,
                std::span<const std::int32_t> ids, View signal, Activations& activations) {
  DGEMMA_CHECK(static_cast<std::int64_t>(ids.size()) == pass.rows());
  const Slots& s = activations.place(config, config.layers[0], pass.rows());
  embed(c, s.x, ids, weights.embedding, config.embedding_scale);
  std::int64_t row = 0;
  for (const Segment& segment : pass.segments()) {
    if (segment.role == Role::decoder) {
      const View x = s.x.slice(row, segment.rows);
      if (signal) {  // a zero signal gives a zero MLP output exactly, so the first step skips it
        const View normed = s.normed.slice(row, segment.rows), branch = s.branch.slice(row, segment.rows);
        rms_norm(c, normed, signal.slice(row, segment.rows), weights.self_conditioning_norm, config.rms_norm_eps);
        gated_mlp(c, weights.self_conditioning, branch, normed, s.gate.slice(row, segment.rows),
                  s.up.slice(row, segment.rows));
        add(c, x, x, branch);
      }
      rms_norm_unit(c, x, x, config.hidden, config.rms_norm_eps);
    }
    row += segment.rows;
  }
}

void stack_forward(Context& c, const ModelConfig& config, const Weights& weights, const Pass& pass,
                   Activations& activations, const LayerObserver& observer) {
  for (std::size_t index = 0; index < weights.layers.size(); ++index) {
    layer_forward(c, config, index, weights.layers[index], pass, activations);
    if (observer) observer(index, activations.slots(), activations.routing);
  }
  for (const Segment& segment : pass.segments()) {
    if (segment.role == Role::encoder) segment.cache->advance(segment.rows);
  }
}

void final_norm(Context& c, const ModelConfig& config, const Weights& weights, View out, View x) {
  rms_norm(c, out, x, weights.final_norm, config.rms_norm_eps);
}

}  // namespace dgemma
