// What one sweep over the weights computes: segments of rows, each with its role, its sequence and its positions.
// Several sequences and both roles may share a pass. Knows nothing of tokens, prompts and canvases.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/kv_cache.h"

namespace dgemma {

enum class Role {
  encoder,  // causal; its keys and values are kept in the cache
  decoder,  // every row sees every row of the segment and the cached past; nothing is kept
};

struct Segment {
  Role role = Role::encoder;
  std::int64_t rows = 0;
  KvCache* cache = nullptr;  // rows take positions cache->length() ...; one segment a cache in a pass
};

class Pass {
 public:
  // Reserves room in the caches of encoder segments; throws `resource` when one is full.
  explicit Pass(std::vector<Segment> segments);

  std::span<const Segment> segments() const { return segments_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(positions_.size()); }
  std::span<const std::int32_t> positions() const { return positions_; }

 private:
  std::vector<Segment> segments_;
  std::vector<std::int32_t> positions_;
};

}  // namespace dgemma
