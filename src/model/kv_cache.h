// Keys and values of one sequence, written by encoder rows and read by all. Full layers keep every position and grow;
// sliding layers keep the last window - 1 positions, which is all that any later row may see (spec
// architecture.md 2.6, 2.7).
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "ops/attention.h"

namespace dgemma {

class KvCache {
 public:
  // `capacity`: the most positions that will ever be written; reserve() of more is a resource error.
  KvCache(const ModelConfig& config, std::int64_t capacity);

  // Positions written so far = the position of the next row.
  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return capacity_; }

  // Throws `resource` when `rows` more do not fit; otherwise makes room, so that append cannot fail.
  void reserve(std::int64_t rows);

  // The stored keys and values of a layer, in order of position, the last one being length() - 1.
  std::vector<KeyPiece> pieces(std::size_t layer) const;

  // Writes rows [rows, kv_heads * head_dim] at positions length() ...; advance() follows when every layer has written.
  void append(std::size_t layer, View k, View v);
  void advance(std::int64_t rows) { length_ += rows; }

  // Forgets everything.
  void clear() { length_ = 0; }

  // Bytes held now.
  std::int64_t size_bytes() const;

 private:
  struct LayerStore {
    std::int64_t width = 0;  // kv_heads * head_dim
    std::int64_t ring = 0;   // slots of a sliding layer; 0: a full layer, whose slots grow
    std::int64_t slots = 0;
    std::vector<float> k, v;
  };

  std::int64_t capacity_;
  std::int64_t length_ = 0;
  std::vector<LayerStore> layers_;
};

}  // namespace dgemma
