#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "text/tokenizer.h"

namespace dgemma {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxJsonBytes = 256 << 20;
constexpr std::int64_t kMaxVocabulary = 1 << 22;

// A value for an error message: text in any encoding, cut short.
std::string printed(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 200);
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
  bad_input("tokenizer.json: a merge must be two pieces, found {}", printed(entry));
}

// The two large parts of the file, taken out while it is parsed: as a document of values they would be ten times as
// large, and take ten times as long.
struct LargeParts {
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;
};

// The parser's callback: sees every event, answers whether the document keeps the value.
class Splitter {
 public:
  explicit Splitter(LargeParts& parts) : parts_(parts) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth > 32) bad_input("tokenizer.json: nested deeper than 32 levels");
    if (event == Event::key && depth == 1) in_model_ = value == "model";
    if (event == Event::key && depth == 2) {
      part_ = !in_model_          ? Part::other
              : value == "vocab"  ? Part::vocab
              : value == "merges" ? Part::merges
                                  : Part::other;
    }
    if (depth < 3 || !in_model_ || part_ == Part::other) return true;
    return part_ == Part::vocab ? vocab(event, value) : merge(depth, event, value);
  }

 private:
  enum class Part { other, vocab, merges };

  // Entries "piece": id. Nested values are kept for checked_id to refuse.
  bool vocab(Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key) {
      piece_ = std::move(value.get_ref<std::string&>());
    } else if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      bad_input("tokenizer.json: the id of \"{}\" must be an integer", piece_);
    } else if (event == Json::parse_event_t::value) {
      parts_.vocab.emplace_back(piece_, checked_id(value, piece_));
    }
    return false;
  }

  // Entries "a b", or ["a", "b"], which is whole at its end.
  bool merge(int depth, Json::parse_event_t event, Json& value) {
    const bool whole = event == Json::parse_event_t::value || event == Json::parse_event_t::array_end ||
                       event == Json::parse_event_t::object_end;
    if (depth > 3 || !whole) return true;
    parts_.merges.push_back(merge_parts(value));
    return false;
  }

  LargeParts& parts_;
  bool in_model_ = false;
  Part part_ = Part::other;
  std::string piece_;
};

// The document without `parts`.
Json parse(std::span<const std::byte> bytes, LargeParts& parts) {
  if (bytes.size() > kMaxJsonBytes)
    bad_input("tokenizer.json: {} bytes, expected at most {}", bytes.size(), kMaxJsonBytes);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  try {
    return Json::parse(text, text + bytes.size(), Splitter(parts));
  } catch (const Json::exception& error) {
    bad_input("tokenizer.json: not valid JSON: {}", error.what());
  }
}

// What has a default when the file leaves it out or writes null.
bool flag(const Json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// Whether spaces become U+2581, from the normalizer. Any other step would change ids, so it is refused by name.
bool escapes_spaces(const Json& document) {
  const Json normalizer = document.value("normalizer", Json());
  const bool escapes = normalizer.is_object() && normalizer.value("type", Json()) == "Replace" &&
                       normalizer.value("pattern", Json()) == Json{{"String", " "}} &&
                       normalizer.value("content", Json()) == "\u2581";
  if (!escapes && !normalizer.is_null()) {
    fail(ErrorKind::unsupported,
         "tokenizer.json: expected no normalizer or one that replaces \" \" by U+2581, found {}", printed(normalizer));
  }
  const Json pre = document.value("pre_tokenizer", Json());
  // Gemma's split at spaces comes after the normalizer has removed them: it never splits.
  const bool idle = pre.is_object() && escapes && pre.value("type", Json()) == "Split" &&
                    pre.value("pattern", Json()) == Json{{"String", " "}};
  if (!idle && !pre.is_null()) {
    fail(ErrorKind::unsupported, "tokenizer.json: expected no pre_tokenizer or Gemma's, found {}", printed(pre));
  }
  return escapes;
}

}  // namespace

Tokenizer Tokenizer::from_json(std::span<const std::byte> bytes) {
  LargeParts parts;
  const Json document = parse(bytes, parts);
  if (!document.is_object() || !document.contains("model") || !document["model"].is_object()) {
    bad_input("tokenizer.json: expected an object with a model");
  }
  const Json& model = document["model"];
  if (model.value("type", Json("BPE")) != "BPE") {
    fail(ErrorKind::unsupported, "tokenizer.json: model type {} is not built, expected BPE", printed(model["type"]));
  }
  if (!model.contains("vocab") || !model["vocab"].is_object() || !model.contains("merges") ||
      !model["merges"].is_array()) {
    bad_input("tokenizer.json: the model needs vocab and merges");
  }
  Vocabulary v;
  std::unordered_map<std::string, std::int32_t> by_piece;
  by_piece.reserve(parts.vocab.size());
  // Ids are nearly dense in real files; a huge one must not make a huge table.
  const std::size_t most = 4 * parts.vocab.size() + 1024;
  const auto place = [&](const std::string& piece, std::int32_t id) {
    if (static_cast<std::size_t>(id) >= most) {
      bad_input("tokenizer.json: the id of \"{}\" is {}, too large for a vocabulary of this size", piece, id);
    }
    if (static_cast<std::size_t>(id) >= v.pieces.size()) v.pieces.resize(static_cast<std::size_t>(id) + 1);
    v.pieces[id] = piece;
    by_piece[piece] = id;
  };
  for (const auto& [piece, id] : parts.vocab) place(piece, id);
  if (document.contains("added_tokens") && document["added_tokens"].is_array()) {
    for (const Json& token : document["added_tokens"]) {
      if (!token.is_object() || !token.contains("content") || !token["content"].is_string() || !token.contains("id")) {
        bad_input("tokenizer.json: an added token needs content and id");
      }
      const std::string content = token["content"].get<std::string>();
      for (const char* name : {"lstrip", "rstrip", "single_word"}) {
        if (flag(token, name, false)) {
          fail(ErrorKind::unsupported, "tokenizer.json: added token \"{}\" sets {}, which is not built", content, name);
        }
      }
      v.added.push_back({checked_id(token["id"], content), flag(token, "special", false)});
      place(content, v.added.back().id);
    }
  }
  if (flag(model, "ignore_merges", false)) {
    fail(ErrorKind::unsupported, "tokenizer.json: ignore_merges is not built");
  }
  v.escape_spaces = escapes_spaces(document);
  v.byte_fallback = flag(model, "byte_fallback", false);
  v.fuse_unknown = flag(model, "fuse_unk", false);
  const auto find = [&by_piece](const std::string& piece) {
    const auto found = by_piece.find(piece);
    return found == by_piece.end() ? -1 : found->second;
  };
  if (model.contains("unk_token") && model["unk_token"].is_string()) v.unknown = find(model["unk_token"]);
  v.bos = find("<bos>");
  v.eos = find("<eos>");
  v.pad = find("<pad>");

  v.merges.reserve(parts.merges.size());
  for (const auto& [left, right] : parts.merges) {
    const auto rank = static_cast<std::int32_t>(v.merges.size());
    v.merges.push_back({find(left), find(right), find(left + right), rank});
    if (v.merges.back().left < 0 || v.merges.back().right < 0 || v.merges.back().product < 0) {
      bad_input("tokenizer.json: merge {} (\"{}\" \"{}\") uses a piece that is not in the vocabulary", rank, left,
                right);
    }
  }
  return Tokenizer(std::move(v));
}

}  // namespace dgemma
