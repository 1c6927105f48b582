// The named places that a layer writes to. Their names are the reference's; tests read them by name.
#pragma once

#include "model/config.h"
#include "ops/experts.h"
#include "tensor/view.h"

namespace dgemma {

struct Slots {
  View x;              // [rows, hidden] the residual stream: input and output of the layer
  View normed;         // [rows, hidden] input of the branch at work
  View q, k, v;        // [rows, heads * head_dim], [rows, kv_heads * head_dim]: after norm and rope
  View attn;           // [rows, heads * head_dim] attention output before o_proj
  View mid;            // [rows, hidden] residual stream after attention
  View branch;         // [rows, hidden] output of a projection back to the stream
  View gate, up;       // [rows, intermediate]
  View dense;          // [rows, hidden] dense branch (after its own norm when there are experts)
  View router_logits;  // [rows, experts]
  View moe;            // [rows, hidden] expert branch after its norm
};

// The owner of one layer's slots, used again for each layer in turn.
class Activations {
 public:
  // Places every slot for `rows` rows of `layer`; keeps what it can of earlier calls' memory. x survives, and so do the
  // first rows of all slots when the same layer is placed again for fewer.
  Slots& place(const ModelConfig& config, const LayerConfig& layer, std::int64_t rows);
  Slots& slots() { return slots_; }

  Routing routing;
  ExpertBuffers expert_buffers;

 private:
  Slots slots_;
  Matrix x_, normed_, q_, k_, v_, attn_, mid_, branch_, gate_, up_, dense_, router_logits_, moe_;
};

}  // namespace dgemma
