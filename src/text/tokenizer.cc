#include "text/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>

#include "base/error.h"
#include "text/utf8.h"

namespace dgemma {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxJsonBytes = 256 << 20;
constexpr std::int64_t kMaxVocabulary = 1 << 22;
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

Json parse(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxJsonBytes)
    bad_input("tokenizer.json: {} bytes, expected at most {}", bytes.size(), kMaxJsonBytes);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  try {
    return Json::parse(text, text + bytes.size(), [](int depth, Json::parse_event_t, Json&) {
      if (depth > 32) bad_input("tokenizer.json: nested deeper than 32 levels");
      return true;
    });
  } catch (const Json::exception& error) {
    bad_input("tokenizer.json: not valid JSON: {}", error.what());
  }
}

std::int32_t checked_id(const Json& value, const std::string& piece) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() >= kMaxVocabulary) {
    bad_input("tokenizer.json: the id of \"{}\" must be an integer 0 .. {}", piece, kMaxVocabulary - 1);
  }
  return value.get<std::int32_t>();
}

// "a b" split at the first space behind the first character, or ["a", "b"].
std::pair<std::string, std::string> merge_parts(const Json& entry) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  }
  if (entry.is_string()) {
    const std::string text = entry.get<std::string>();
    const std::size_t space = text.find(' ', 1);
    if (space != std::string::npos) return {text.substr(0, space), text.substr(space + 1)};
  }
  bad_input("tokenizer.json: a merge must be two pieces, found {}",
            entry.dump(-1, ' ', true, Json::error_handler_t::replace));
}

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

}  // namespace

Tokenizer Tokenizer::from_json(std::span<const std::byte> bytes) {
  const Json document = parse(bytes);
  if (!document.is_object() || !document.contains("model") || !document["model"].is_object()) {
    bad_input("tokenizer.json: expected an object with a model");
  }
  const Json& model = document["model"];
  if (model.value("type", Json("BPE")) != "BPE") {
    fail(ErrorKind::unsupported, "tokenizer.json: model type {} is not built, expected BPE", model["type"].dump());
  }
  if (!model.contains("vocab") || !model["vocab"].is_object() || !model.contains("merges") ||
      !model["merges"].is_array()) {
    bad_input("tokenizer.json: the model needs vocab and merges");
  }
  Tokenizer t;
  // Ids are nearly dense in real files; a huge one must not make a huge table.
  const std::size_t most = 4 * model["vocab"].size() + 1024;
  const auto place = [&t, most](const std::string& piece, std::int32_t id) {
    if (static_cast<std::size_t>(id) >= most) {
      bad_input("tokenizer.json: the id of \"{}\" is {}, too large for a vocabulary of this size", piece, id);
    }
    if (static_cast<std::size_t>(id) >= t.pieces_.size()) t.pieces_.resize(static_cast<std::size_t>(id) + 1);
    t.pieces_[id] = piece;
    t.by_piece_[piece] = id;
  };
  for (const auto& [piece, id] : model["vocab"].items()) place(piece, checked_id(id, piece));
  std::vector<std::int32_t> controls;
  if (document.contains("added_tokens") && document["added_tokens"].is_array()) {
    for (const Json& token : document["added_tokens"]) {
      if (!token.is_object() || !token.contains("content") || !token["content"].is_string() || !token.contains("id")) {
        bad_input("tokenizer.json: an added token needs content and id");
      }
      const std::string content = token["content"].get<std::string>();
      if (content.empty()) bad_input("tokenizer.json: an added token is empty");
      controls.push_back(checked_id(token["id"], content));
      place(content, controls.back());
    }
  }
  t.control_.assign(t.pieces_.size(), 0);
  for (const std::int32_t id : controls) t.control_[id] = 1;
  t.controls_ = controls;
  std::stable_sort(t.controls_.begin(), t.controls_.end(),
                   [&](std::int32_t a, std::int32_t b) { return t.pieces_[a].size() > t.pieces_[b].size(); });

  if (model.contains("byte_fallback") && model["byte_fallback"].is_boolean()) t.byte_fallback_ = model["byte_fallback"];
  std::fill(std::begin(t.byte_pieces_), std::end(t.byte_pieces_), -1);
  t.byte_of_.assign(t.pieces_.size(), -1);
  for (std::size_t id = 0; t.byte_fallback_ && id < t.pieces_.size(); ++id) {
    const int byte = byte_of(t.pieces_[id]);
    if (byte < 0) continue;
    t.byte_of_[id] = static_cast<std::int16_t>(byte);
    t.byte_pieces_[byte] = static_cast<std::int32_t>(id);
  }
  if (model.contains("unk_token") && model["unk_token"].is_string())
    t.unknown_ = t.id_of(model["unk_token"].get<std::string>());

  std::int32_t rank = 0;
  for (const Json& entry : model["merges"]) {
    const auto [left, right] = merge_parts(entry);
    const std::int32_t a = t.id_of(left), b = t.id_of(right), product = t.id_of(left + right);
    if (a < 0 || b < 0 || product < 0) {
      bad_input("tokenizer.json: merge {} (\"{}\" \"{}\") uses a piece that is not in the vocabulary", rank, left,
                right);
    }
    t.merges_.emplace(static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b), Merge{rank++, product});
  }
  return t;
}

std::int32_t Tokenizer::id_of(std::string_view piece) const {
  const auto found = by_piece_.find(std::string(piece));
  return found == by_piece_.end() ? -1 : found->second;
}

bool Tokenizer::is_control(std::int32_t id) const {
  return id >= 0 && id < size() && control_[static_cast<std::size_t>(id)] != 0;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  if (const std::size_t bad = invalid_utf8(text); bad != std::string_view::npos) {
    bad_input("the text is not valid UTF-8 at byte {}", bad);
  }
  std::vector<std::int32_t> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; special == SpecialTokens::parse && at < text.size();) {
    const auto match = std::find_if(controls_.begin(), controls_.end(),
                                    [&](std::int32_t id) { return text.substr(at).starts_with(pieces_[id]); });
    if (match == controls_.end()) {
      ++at;
      continue;
    }
    encode_plain(text.substr(begin, at - begin), out);
    out.push_back(*match);
    begin = at += pieces_[*match].size();
  }
  encode_plain(text.substr(begin), out);
  return out;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> symbols;
  bool unknown_before = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text[at]);
    const std::string_view character = text[at] == ' ' ? kSpace : text.substr(at, length);
    at += length;
    const std::int32_t id = id_of(character);
    if (id >= 0) {
      symbols.push_back(id);
      unknown_before = false;
      continue;
    }
    const bool has_bytes = byte_fallback_ && std::all_of(character.begin(), character.end(), [&](char c) {
                             return byte_pieces_[static_cast<std::uint8_t>(c)] >= 0;
                           });
    if (has_bytes) {
      for (const char c : character) symbols.push_back(byte_pieces_[static_cast<std::uint8_t>(c)]);
    } else if (unknown_ >= 0 && !unknown_before) {  // fuse_unk: a run of unknown characters is one token
      symbols.push_back(unknown_);
    }
    unknown_before = !has_bytes;
  }
  merge(symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

// Lowest rank first, leftmost on ties: a doubly linked list and a heap of candidate pairs, stale ones skipped when
// popped.
void Tokenizer::merge(std::vector<std::int32_t>& symbols) const {
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
    const auto found = merges_.find(static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right));
    if (found == merges_.end()) return;
    heap.push({static_cast<std::uint64_t>(found->second.rank) << 32 | static_cast<std::uint32_t>(at), left, right,
               found->second.product});
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
  std::erase(symbols, -1);
}

std::string Tokenizer::text_of(std::int32_t id) const {
  if (id < 0 || id >= size()) return {};
  if (byte_of_[id] >= 0) return std::string(1, static_cast<char>(byte_of_[id]));
  const std::string_view piece = pieces_[id];
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    if (!is_control(id) && piece.substr(at).starts_with(kSpace)) {
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
