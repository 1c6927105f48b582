#include "model/kv_cache.h"

#include <algorithm>

#include "base/error.h"

namespace dgemma {

KvCache::KvCache(const ModelConfig& config, std::int64_t capacity) : capacity_(capacity) {
  for (const LayerConfig& layer : config.layers) {
    LayerStore store;
    store.width = layer.kv_heads * layer.head_dim;
    store.ring = layer.sliding ? config.sliding_window - 1 : 0;
    layers_.push_back(std::move(store));
  }
}

void KvCache::reserve(std::int64_t rows) {
  const std::int64_t needed = length_ + rows;
  if (needed > capacity_) {
    fail(ErrorKind::resource,
         "the context is full: {} positions are needed, {} were planned; ask for a larger context (-c)", needed,
         capacity_);
  }
  for (LayerStore& store : layers_) {
    const std::int64_t most = store.ring > 0 ? std::min(store.ring, capacity_) : capacity_;
    const std::int64_t wanted = std::min(needed, most);
    if (wanted <= store.slots) continue;
    // A ring grows only while it has not wrapped (its slots are then its positions), so growing never moves a row.
    store.slots = std::min(most, std::max(wanted, 2 * store.slots));
    store.k.resize(static_cast<std::size_t>(store.slots * store.width));
    store.v.resize(store.k.size());
  }
}

std::vector<KeyPiece> KvCache::pieces(std::size_t layer) const {
  const LayerStore& store = layers_[layer];
  const auto piece = [&](std::int64_t first, std::int64_t count) {
    float* k = const_cast<float*>(store.k.data()) + first * store.width;
    float* v = const_cast<float*>(store.v.data()) + first * store.width;
    return KeyPiece{{k, count, store.width, store.width}, {v, count, store.width, store.width}};
  };
  if (length_ == 0) return {};
  if (store.ring == 0 || length_ <= store.ring) return {piece(0, length_)};
  const std::int64_t oldest = length_ % store.ring;
  if (oldest == 0) return {piece(0, store.ring)};
  return {piece(oldest, store.ring - oldest), piece(0, oldest)};
}

void KvCache::append(std::size_t layer, View k, View v) {
  LayerStore& store = layers_[layer];
  DGEMMA_CHECK(k.cols == store.width && v.cols == store.width && k.rows == v.rows);
  const std::int64_t skipped = store.ring > 0 ? std::max<std::int64_t>(0, k.rows - store.ring) : 0;
  for (std::int64_t row = skipped; row < k.rows; ++row) {
    const std::int64_t position = length_ + row;
    const std::int64_t slot = store.ring > 0 ? position % store.ring : position;
    DGEMMA_CHECK(slot < store.slots);
    std::copy_n(k.row(row), store.width, store.k.data() + slot * store.width);
    std::copy_n(v.row(row), store.width, store.v.data() + slot * store.width);
  }
}

std::int64_t KvCache::size_bytes() const {
  std::int64_t total = 0;
  for (const LayerStore& store : layers_)
    total += static_cast<std::int64_t>((store.k.size() + store.v.size()) * sizeof(float));
  return total;
}

}  // namespace dgemma
