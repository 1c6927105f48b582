#include "text/tokenizer_to_gguf.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "text/tokenizer.h"

namespace dgemma {
namespace {

using Json = nlohmann::json;

enum TokenType : std::int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

constexpr float kScore = -1000.0f;  // of every token; ranked merges have no use for scores

// Control tokens that a reader must print, for the structure they carry.
const std::unordered_set<std::string_view> kPrinted{
    "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>"};

// "left right"; readers split at the first space behind the first character.
std::string merge_text(const Json& entry) {
  if (entry.is_string()) return entry.get<std::string>();
  const std::string left = entry[0].get<std::string>();
  const std::string text = left + ' ' + entry[1].get<std::string>();
  if (text.find(' ', 1) != left.size()) {
    bad_input("tokenizer.json: the merge of \"{}\" and \"{}\" cannot be written to GGUF: its first piece has a space",
              left, entry[1].get<std::string>());
  }
  return text;
}

bool flag(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// GGUF names one end-of-text token. Readers know the pieces that end a turn or a tool call; one more id fits.
void add_stop_ids(GgufWriter& out, const Tokenizer& tokenizer, std::span<const std::int32_t> stop_ids,
                  std::vector<std::string>& notes) {
  std::vector<std::int32_t> unnamed;
  for (const std::int32_t id : stop_ids) {
    const std::string_view piece = tokenizer.piece(id);
    const bool known = id == tokenizer.eos() || piece == "<turn|>" || piece == "<|tool_response>";
    if (!known && id >= 0) unnamed.push_back(id);
  }
  if (!unnamed.empty()) out.add_u32("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(unnamed[0]));
  for (std::size_t i = 1; i < unnamed.size(); ++i) {
    notes.push_back(fmt::format("stop id {} of generation_config.json has no place in GGUF", unnamed[i]));
  }
}

}  // namespace

std::vector<std::string> tokenizer_to_gguf(std::span<const std::byte> tokenizer_json, std::int64_t vocabulary,
                                           std::span<const std::int32_t> stop_ids, GgufWriter& out) {
  const Tokenizer tokenizer = Tokenizer::from_json(tokenizer_json);  // and so the document below has the right shape
  if (tokenizer.size() > vocabulary) {
    bad_input("tokenizer.json has {} pieces, the model's vocabulary {}; the files do not belong together",
              tokenizer.size(), vocabulary);
  }
  const auto* text = reinterpret_cast<const char*>(tokenizer_json.data());
  const Json document = Json::parse(text, text + tokenizer_json.size());
  const Json& model = document["model"];

  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  for (std::int32_t id = 0; id < vocabulary; ++id) {
    const std::string_view piece = tokenizer.piece(id);
    tokens.push_back(piece.empty() ? fmt::format("[PAD{}]", id) : std::string(piece));
    types.push_back(piece.empty()              ? kUnused
                    : tokenizer.is_byte(id)    ? kByte
                    : tokenizer.is_control(id) ? kControl
                                               : kNormal);
  }
  for (const Json& token : document.value("added_tokens", Json::array())) {
    const auto id = token["id"].get<std::size_t>();
    if (!flag(token, "special") || kPrinted.contains(tokens[id])) types[id] = kUserDefined;
  }
  std::vector<std::string> merges;
  merges.reserve(model["merges"].size());
  for (const Json& entry : model["merges"]) merges.push_back(merge_text(entry));

  out.add_string("tokenizer.ggml.model", "gemma4");
  out.add_strings("tokenizer.ggml.tokens", tokens);
  out.add_f32s("tokenizer.ggml.scores", std::vector<float>(tokens.size(), kScore));
  out.add_i32s("tokenizer.ggml.token_type", types);
  out.add_strings("tokenizer.ggml.merges", merges);
  const auto add_id = [&](const char* key, std::int32_t id) {
    if (id >= 0) out.add_u32(key, static_cast<std::uint32_t>(id));
  };
  add_id("tokenizer.ggml.bos_token_id", tokenizer.bos());
  add_id("tokenizer.ggml.eos_token_id", tokenizer.eos());
  add_id("tokenizer.ggml.unknown_token_id",
         tokenizer.id_of(model.value("unk_token", Json()).is_string() ? model["unk_token"].get<std::string>()
                                                                      : std::string("<unk>")));
  add_id("tokenizer.ggml.padding_token_id", tokenizer.pad());
  add_id("tokenizer.ggml.mask_token_id", tokenizer.id_of("<mask>"));
  out.add_boolean("tokenizer.ggml.add_space_prefix", false);
  out.add_boolean("tokenizer.ggml.add_bos_token", true);

  std::vector<std::string> notes;
  add_stop_ids(out, tokenizer, stop_ids, notes);
  if (document.value("normalizer", Json()).is_null() || !flag(model, "byte_fallback") || !flag(model, "fuse_unk")) {
    notes.push_back(
        "readers of GGUF turn spaces into U+2581, take bytes for unknown characters and fuse unknown ones; this "
        "tokenizer.json does not, so texts outside its vocabulary may get other ids");
  }
  return notes;
}

}  // namespace dgemma
