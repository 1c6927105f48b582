// The look-up tables of the tokenizer's inner loop.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace dgemma {

inline std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

// The high bits are the good ones.
inline std::uint64_t hash_pair(std::uint64_t key) {
  key ^= key >> 32;
  key *= 0x9E3779B97F4A7C15u;
  key ^= key >> 29;
  return key * 0xBF58476D1CE4E5B9u;
}

// Code point -> id in pages of 256, made when first set.
class CharacterTable {
 public:
  CharacterTable() : page_of_(0x1100, 0), ids_(256, -1) {}

  std::int32_t find(std::uint32_t code_point) const {
    return ids_[page_of_[code_point >> 8] * 256u + (code_point & 255)];
  }
  void set(std::uint32_t code_point, std::int32_t id) {
    std::uint16_t& page = page_of_[code_point >> 8];
    if (page == 0) {
      page = static_cast<std::uint16_t>(ids_.size() / 256);
      ids_.resize(ids_.size() + 256, -1);
    }
    ids_[page * 256u + (code_point & 255)] = id;
  }

 private:
  std::vector<std::uint16_t> page_of_;
  std::vector<std::int32_t> ids_;  // page 0 stays empty
};

// (left id, right id) -> rank and product; open addressing, at most half full.
class PairTable {
 public:
  struct Entry {
    std::uint64_t key;
    std::int32_t rank, product;
  };

  explicit PairTable(std::size_t count)
      : bits_(std::bit_width(2 * count + 1)), entries_(std::size_t{1} << bits_, Entry{kEmpty, 0, 0}) {}

  // Replaces an entry of the same pair.
  void set(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t product) {
    const std::uint64_t key = pair_key(left, right);
    entries_[slot(key)] = {key, rank, product};
  }
  // Null when the pair does not merge.
  const Entry* find(std::int32_t left, std::int32_t right) const {
    const Entry& entry = entries_[slot(pair_key(left, right))];
    return entry.key == kEmpty ? nullptr : &entry;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  std::size_t slot(std::uint64_t key) const {
    std::size_t at = hash_pair(key) >> (64 - bits_);
    while (entries_[at].key != key && entries_[at].key != kEmpty) at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  int bits_;
  std::vector<Entry> entries_;
};

// Which symbols can stand side by side inside one piece. Where two neighbours of a text cannot, no merge ever crosses,
// and the text may be cut there without changing a single id. A false "can" costs a cut, not correctness, so one hashed
// bit a pair is enough.
class NeighbourFilter {
 public:
  NeighbourFilter() : bits_(std::size_t{1} << (kBits - 6), 0) {}

  void set(std::int32_t left, std::int32_t right) {
    const std::uint64_t at = index(left, right);
    bits_[at >> 6] |= std::uint64_t{1} << (at & 63);
  }
  bool can_join(std::int32_t left, std::int32_t right) const {
    const std::uint64_t at = index(left, right);
    return bits_[at >> 6] >> (at & 63) & 1;
  }

 private:
  static constexpr int kBits = 22;  // 512 KB

  static std::uint64_t index(std::int32_t left, std::int32_t right) {
    return hash_pair(pair_key(left, right)) >> (64 - kBits);
  }

  std::vector<std::uint64_t> bits_;
};

}  // namespace dgemma
