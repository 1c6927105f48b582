// What one sweep over the weights computes: segments of rows, each with its role, its sequence and its positions.
// Several sequences and both roles may share a pass. Knows nothing of tokens, prompts and canvases.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/kv_cache.h"

namespace dgemma {

enum class Role {
  encoder,  // causal; its keys and values are kept in the cache
  decoder,  // every row sees every row of the segment and the cached past; nothing is kept
};

inline constexpr std::int64_t kAllRows = std::numeric_limits<std::int64_t>::max();

struct Segment {
  Role role = Role::encoder;
  std::int64_t rows = 0;
  KvCache* cache = nullptr;  // rows take positions cache->length() ...; one segment a cache in a pass
  // How many rows, the last ones, have an output behind the last layer that somebody reads. Of the others the last
  // layer computes keys and values only: an encoder segment has no other use, unless a token follows its last row.
  std::int64_t outputs = kAllRows;
};

class Pass {
 public:
  // Reserves room in the caches of encoder segments; throws `resource` when one is full. `outputs` above a segment's
  // rows means all of them.
  explicit Pass(std::vector<Segment> segments);

  std::span<const Segment> segments() const { return segments_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(positions_.size()); }
  std::span<const std::int32_t> positions() const { return positions_; }
  // The rows whose output is read, ascending, and their positions.
  std::span<const std::int64_t> output_rows() const { return output_rows_; }
  std::span<const std::int32_t> output_positions() const { return output_positions_; }

 private:
  std::vector<Segment> segments_;
  std::vector<std::int32_t> positions_, output_positions_;
  std::vector<std::int64_t> output_rows_;
};

}  // namespace dgemma
