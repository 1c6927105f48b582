#include "text/tokenizer_from_gguf.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace dgemma {
namespace {

enum TokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// A list that must be there and be as long as the vocabulary.
template <typename T>
std::vector<T> per_piece(std::optional<std::vector<T>> list, std::size_t count, const char* key) {
  if (!list) bad_input("the GGUF file has no {}, which its tokenizer needs", key);
  if (list->size() != count)
    bad_input("{} has {} values, expected one for each of {} tokens", key, list->size(), count);
  return std::move(*list);
}

std::int32_t token_id(const GgufFile& file, const char* key, std::size_t count) {
  const std::int64_t id = file.integer(key).value_or(-1);
  if (id < -1 || id >= static_cast<std::int64_t>(count)) {
    bad_input("{} is {}, outside the vocabulary of {} tokens", key, id, count);
  }
  return static_cast<std::int32_t>(id);
}

void read_merges(const GgufFile& file, Vocabulary& vocabulary) {
  const auto merges = file.strings("tokenizer.ggml.merges");
  if (!merges) bad_input("the GGUF file has no tokenizer.ggml.merges, which a gemma4 tokenizer needs");
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(vocabulary.pieces.size());
  for (std::size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    ids.emplace(vocabulary.pieces[id], static_cast<std::int32_t>(id));
  }
  const auto find = [&](std::string_view piece, std::string_view merge) {
    const auto found = ids.find(piece);
    if (found == ids.end()) bad_input("tokenizer.ggml.merges: \"{}\" uses a piece that is not a token", merge);
    return found->second;
  };
  vocabulary.merges.reserve(merges->size());
  for (const std::string_view merge : *merges) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) bad_input("tokenizer.ggml.merges: \"{}\" is not two pieces", merge);
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    vocabulary.merges.push_back({find(left, merge), find(right, merge), find(std::string(left).append(right), merge),
                                 static_cast<std::int32_t>(vocabulary.merges.size())});
  }
}

}  // namespace

Tokenizer tokenizer_from_gguf(const GgufFile& file) {
  const std::string_view model = file.string("tokenizer.ggml.model").value_or("");
  const bool gemma4 = model == "gemma4";
  if (!gemma4 && model != "llama") {
    fail(ErrorKind::unsupported, "tokenizer.ggml.model is \"{}\", expected gemma4 or llama", model);
  }
  // The format's default for llama is true, so Gemma's converter always writes it.
  if (file.boolean("tokenizer.ggml.add_space_prefix").value_or(!gemma4)) {
    fail(ErrorKind::unsupported, "tokenizer.ggml.add_space_prefix is true, which is not built");
  }
  const auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty()) bad_input("the GGUF file has no tokenizer.ggml.tokens");
  const std::size_t count = tokens->size();
  const auto types = per_piece(file.integers("tokenizer.ggml.token_type"), count, "tokenizer.ggml.token_type");

  Vocabulary vocabulary;
  vocabulary.pieces.assign(tokens->begin(), tokens->end());
  vocabulary.byte_fallback = true;
  vocabulary.bos = token_id(file, "tokenizer.ggml.bos_token_id", count);
  vocabulary.eos = token_id(file, "tokenizer.ggml.eos_token_id", count);
  vocabulary.pad = token_id(file, "tokenizer.ggml.padding_token_id", count);
  vocabulary.unknown = token_id(file, "tokenizer.ggml.unknown_token_id", count);
  std::vector<std::uint8_t> mergeable(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const bool control = types[i] == kControl || types[i] == kUnknown || id == vocabulary.unknown;
    mergeable[i] = types[i] == kNormal || types[i] == kUserDefined || types[i] == kUnused;
    // The converter makes a control token of </s>, which ends Llama's texts; Gemma 4's tokenizer has it as a piece.
    if (gemma4 && vocabulary.pieces[i] == "</s>") continue;
    if (control || types[i] == kUserDefined) vocabulary.added.push_back({id, control || gemma4});
  }
  if (gemma4) {
    read_merges(file, vocabulary);
  } else {
    const auto scores = per_piece(file.numbers("tokenizer.ggml.scores"), count, "tokenizer.ggml.scores");
    set_merges_from_scores(vocabulary, std::vector<float>(scores.begin(), scores.end()), mergeable);
  }
  return Tokenizer(std::move(vocabulary));
}

}  // namespace dgemma
