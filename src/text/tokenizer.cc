#include "text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace dgemma {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581
constexpr std::size_t kScanned = 24;  // words of up to so many symbols are scanned, longer ones use a heap

// The byte of a piece written <0xNN>, or -1.
int byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  int value = 0;
  for (const char digit : piece.substr(3, 2)) {
    const std::size_t index = std::string_view("0123456789ABCDEF").find(digit);
    if (index == std::string_view::npos) return -1;
    value = value * 16 + static_cast<int>(index);
  }
  return value;
}

// The first character of valid text that is not empty.
std::uint32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[i])); };
  switch (utf8_length(text[0])) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 31) << 6 | (byte(1) & 63);
    case 3:
      return (byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
    default:
      return (byte(0) & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
  }
}

void check_utf8(std::string_view text) {
  if (const std::size_t bad = invalid_utf8(text); bad != std::string_view::npos) {
    bad_input("the text is not valid UTF-8 at byte {}", bad);
  }
}

// Lowest rank first, leftmost on ties: a doubly linked list and a heap of candidate pairs, stale ones skipped when
// popped.
void merge_long(const PairTable& pairs, std::span<std::int32_t> symbols, std::vector<std::int32_t>& out) {
  const auto count = static_cast<std::int32_t>(symbols.size());
  std::vector<std::int32_t> previous(symbols.size()), next(symbols.size());
  struct Candidate {
    std::uint64_t key;  // rank << 32 | left position
    std::int32_t left, right;
    std::int32_t product;
    bool operator>(const Candidate& other) const { return key > other.key; }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto consider = [&](std::int32_t at) {
    if (at < 0 || next[at] >= count) return;
    const std::int32_t left = symbols[at], right = symbols[next[at]];
    const PairTable::Entry* found = pairs.find(left, right);
    if (found == nullptr) return;
    heap.push(
        {static_cast<std::uint64_t>(found->rank) << 32 | static_cast<std::uint32_t>(at), left, right, found->product});
  };
  for (std::int32_t i = 0; i < count; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
  }
  for (std::int32_t i = 0; i < count; ++i) consider(i);
  while (!heap.empty()) {
    const Candidate candidate = heap.top();
    heap.pop();
    const auto at = static_cast<std::int32_t>(candidate.key & 0xffffffffu);
    if (symbols[at] != candidate.left || next[at] >= count || symbols[next[at]] != candidate.right) continue;
    const std::int32_t gone = next[at];
    symbols[at] = candidate.product;
    symbols[gone] = -1;
    next[at] = next[gone];
    if (next[at] < count) previous[next[at]] = at;
    consider(previous[at]);
    consider(at);
  }
  std::copy_if(symbols.begin(), symbols.end(), std::back_inserter(out), [](std::int32_t id) { return id >= 0; });
}

// The same for a few symbols: the lowest pair is found by looking at all.
void merge_short(const PairTable& pairs, std::span<std::int32_t> symbols, std::vector<std::int32_t>& out) {
  constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  std::int32_t ranks[kScanned], products[kScanned];  // of the pair that starts at each symbol
  std::size_t count = symbols.size();
  const auto look = [&](std::size_t at) {
    const PairTable::Entry* found = at + 1 < count ? pairs.find(symbols[at], symbols[at + 1]) : nullptr;
    ranks[at] = found == nullptr ? kNone : found->rank;
    products[at] = found == nullptr ? 0 : found->product;
  };
  for (std::size_t at = 0; at < count; ++at) look(at);
  while (count > 1) {
    const auto at = static_cast<std::size_t>(std::min_element(ranks, ranks + count) - ranks);
    if (ranks[at] == kNone) break;
    symbols[at] = products[at];
    std::copy(symbols.begin() + at + 2, symbols.begin() + count, symbols.begin() + at + 1);
    std::copy(ranks + at + 2, ranks + count, ranks + at + 1);
    std::copy(products + at + 2, products + count, products + at + 1);
    --count;
    look(at);
    if (at > 0) look(at - 1);
  }
  out.insert(out.end(), symbols.begin(), symbols.begin() + count);
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary v)
    : pieces_(std::move(v.pieces)),
      control_(pieces_.size(), 0),
      byte_of_(pieces_.size(), -1),
      pairs_(v.merges.size()),
      unknown_(v.unknown),
      bos_(v.bos),
      eos_(v.eos),
      pad_(v.pad),
      escape_spaces_(v.escape_spaces),
      byte_fallback_(v.byte_fallback),
      fuse_unknown_(v.fuse_unknown) {
  const auto check = [this](std::int32_t id, const char* what, bool may_miss) {
    if (id < (may_miss ? -1 : 0) || id >= size()) {
      bad_input("the vocabulary has {} pieces, but {} names id {}", size(), what, id);
    }
  };
  for (const std::int32_t id : {unknown_, bos_, eos_, pad_}) check(id, "a special token", true);

  std::fill(std::begin(byte_pieces_), std::end(byte_pieces_), -1);
  by_piece_.reserve(pieces_.size());
  std::vector<std::uint8_t> valid(pieces_.size());
  for (std::size_t id = 0; id < pieces_.size(); ++id) {
    const std::string& piece = pieces_[id];
    if (piece.empty()) continue;
    by_piece_.emplace(piece, static_cast<std::int32_t>(id));
    valid[id] = invalid_utf8(piece) == std::string_view::npos;
    if (valid[id] && utf8_length(piece[0]) == piece.size()) {
      characters_.set(code_point(piece), static_cast<std::int32_t>(id));
    }
    if (const int byte = byte_fallback_ ? byte_of(piece) : -1; byte >= 0) {
      byte_of_[id] = static_cast<std::int16_t>(byte);
      byte_pieces_[byte] = static_cast<std::int32_t>(id);
    }
  }
  for (const Vocabulary::Added& token : v.added) {
    check(token.id, "an added token", false);
    const std::string& text = pieces_[token.id];
    if (text.empty()) bad_input("added token {} is empty", token.id);
    if (token.control) control_[token.id] = 1;
    added_[text] = token.id;
    added_lengths_[static_cast<std::uint8_t>(text[0])].push_back(static_cast<std::uint32_t>(text.size()));
  }
  for (auto& lengths : added_lengths_) {
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }

  // The symbols of a text that a piece can begin or end with: a character, or the piece itself where it is a symbol.
  const auto border = [&](std::int32_t id, bool last, std::int32_t(&symbols)[2]) {
    symbols[0] = is_byte(id) || id == unknown_ ? id : -1;
    symbols[1] = -1;
    const std::string_view piece = pieces_[id];
    if (piece.empty() || !valid[id]) return;
    std::size_t at = last ? piece.size() - 1 : 0;
    while ((static_cast<std::uint8_t>(piece[at]) & 0xC0) == 0x80) --at;
    symbols[1] = characters_.find(code_point(piece.substr(at)));
  };
  for (const Vocabulary::Merge& merge : v.merges) {
    for (const std::int32_t id : {merge.left, merge.right, merge.product}) check(id, "a merge", false);
    pairs_.set(merge.left, merge.right, merge.rank, merge.product);
    std::int32_t left[2], right[2];
    border(merge.left, true, left);
    border(merge.right, false, right);
    for (const std::int32_t a : left) {
      for (const std::int32_t b : right) {
        if (a >= 0 && b >= 0) neighbours_.set(a, b);
      }
    }
  }
}

void set_merges_from_scores(Vocabulary& vocabulary, std::span<const float> scores,
                            std::span<const std::uint8_t> mergeable) {
  const std::size_t count = vocabulary.pieces.size();
  if (scores.size() != count || mergeable.size() != count) {
    bad_input("the vocabulary has {} pieces but {} scores and {} types", count, scores.size(), mergeable.size());
  }
  std::vector<float> distinct(scores.begin(), scores.end());
  if (std::any_of(distinct.begin(), distinct.end(), [](float score) { return score != score; })) {
    bad_input("the score of a piece is not a number");
  }
  std::sort(distinct.begin(), distinct.end(), std::greater<>());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (std::size_t id = 0; id < count; ++id) {
    if (mergeable[id]) ids.emplace(vocabulary.pieces[id], static_cast<std::int32_t>(id));
  }
  vocabulary.merges.clear();
  for (std::size_t id = 0; id < count; ++id) {
    const std::string_view piece = vocabulary.pieces[id];
    if (!mergeable[id] || ids.at(piece) != static_cast<std::int32_t>(id)) continue;
    const auto rank = std::lower_bound(distinct.begin(), distinct.end(), scores[id], std::greater<>());
    for (std::size_t at = 1; at < piece.size(); ++at) {
      const auto left = ids.find(piece.substr(0, at)), right = ids.find(piece.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      vocabulary.merges.push_back({left->second, right->second, static_cast<std::int32_t>(id),
                                   static_cast<std::int32_t>(rank - distinct.begin())});
    }
  }
}

std::int32_t Tokenizer::id_of(std::string_view piece) const {
  const auto found = by_piece_.find(std::string(piece));
  return found == by_piece_.end() ? -1 : found->second;
}

bool Tokenizer::is_control(std::int32_t id) const {
  return id >= 0 && id < size() && control_[static_cast<std::size_t>(id)] != 0;
}

std::string_view Tokenizer::piece(std::int32_t id) const {
  return id >= 0 && id < size() ? std::string_view(pieces_[id]) : std::string_view();
}

// The longest added token at the start of the text, or -1.
std::int32_t Tokenizer::added_at(std::string_view text, bool controls) const {
  for (const std::uint32_t length : added_lengths_[static_cast<std::uint8_t>(text[0])]) {
    if (length > text.size()) continue;
    const auto found = added_.find(std::string(text.substr(0, length)));
    if (found != added_.end() && (controls || !is_control(found->second))) return found->second;
  }
  return -1;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const TextSegment segment{text, special == SpecialTokens::parse};
  return encode({&segment, 1});
}

std::vector<std::int32_t> Tokenizer::encode(std::span<const TextSegment> segments) const {
  std::vector<std::int32_t> out, symbols;
  for (const auto& [text, trusted] : segments) {
    check_utf8(text);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::int32_t token = added_at(text.substr(at), trusted);
      if (token < 0) {
        ++at;
        continue;
      }
      append_symbols(text.substr(begin, at - begin), symbols);
      merge_into(symbols, out);
      out.push_back(token);
      begin = at += pieces_[token].size();
    }
    append_symbols(text.substr(begin), symbols);
  }
  merge_into(symbols, out);
  return out;
}

void Tokenizer::append_symbols(std::string_view text, std::vector<std::int32_t>& symbols) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character =
        escape_spaces_ && text[at] == ' ' ? kSpace : text.substr(at, utf8_length(text[at]));
    at += utf8_length(text[at]);
    if (const std::int32_t id = characters_.find(code_point(character)); id >= 0) {
      symbols.push_back(id);
      continue;
    }
    const bool has_bytes = byte_fallback_ && std::all_of(character.begin(), character.end(), [&](char c) {
                             return byte_pieces_[static_cast<std::uint8_t>(c)] >= 0;
                           });
    if (has_bytes) {
      for (const char c : character) symbols.push_back(byte_pieces_[static_cast<std::uint8_t>(c)]);
    } else if (unknown_ >= 0 && !(fuse_unknown_ && !symbols.empty() && symbols.back() == unknown_)) {
      symbols.push_back(unknown_);
    }
  }
}

// Merges the symbols, appends the result to `out` and leaves `symbols` empty. The text is cut where no merge can cross.
void Tokenizer::merge_into(std::vector<std::int32_t>& symbols, std::vector<std::int32_t>& out) const {
  for (std::size_t begin = 0; begin < symbols.size();) {
    std::size_t end = begin + 1;
    while (end < symbols.size() && neighbours_.can_join(symbols[end - 1], symbols[end])) ++end;
    const std::span<std::int32_t> word(symbols.data() + begin, end - begin);
    if (word.size() <= kScanned) {
      merge_short(pairs_, word, out);
    } else {
      merge_long(pairs_, word, out);
    }
    begin = end;
  }
  symbols.clear();
}

std::string Tokenizer::text_of(std::int32_t id) const {
  if (id < 0 || id >= size()) return {};
  if (byte_of_[id] >= 0) return std::string(1, static_cast<char>(byte_of_[id]));
  const std::string_view piece = pieces_[id];
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    if (escape_spaces_ && !is_control(id) && piece.substr(at).starts_with(kSpace)) {
      text += ' ';
      at += kSpace.size();
    } else {
      text += piece[at++];
    }
  }
  return text;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string out, bytes;
  const auto flush = [&] {
    if (invalid_utf8(bytes) == std::string_view::npos) {
      out += bytes;
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) out += "\xEF\xBF\xBD";
    }
    bytes.clear();
  };
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= size() || (skip_special && is_control(id))) continue;
    if (byte_of_[id] >= 0) {
      bytes += text_of(id);
      continue;
    }
    flush();
    out += text_of(id);
  }
  flush();
  return out;
}

}  // namespace dgemma
