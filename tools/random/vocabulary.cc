#include "random/vocabulary.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace dgemma {
namespace {

enum TokenType : std::int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kByte = 6 };

constexpr std::size_t kFirstByte = 238, kFirstSingle = kFirstByte + 256;
constexpr std::size_t kMerges = 514906;  // of the real vocabulary
constexpr float kScore = -1000.0f;       // of every token; ranked merges have no use for scores
constexpr const char* kSpace = "\u2581";

struct Special {
  const char* piece;
  TokenType type;
};

// Spec gguf.md 2.4; image and audio tokens are left out.
const std::map<std::size_t, Special> kSpecial{
    {0, {"<pad>", kControl}},
    {1, {"<eos>", kControl}},
    {2, {"<bos>", kControl}},
    {3, {"<unk>", kControl}},
    {4, {"<mask>", kControl}},
    {46, {"<|tool>", kControl}},
    {47, {"<tool|>", kControl}},
    {48, {"<|tool_call>", kUserDefined}},
    {49, {"<tool_call|>", kUserDefined}},
    {50, {"<|tool_response>", kUserDefined}},
    {51, {"<tool_response|>", kUserDefined}},
    {52, {"<|\"|>", kUserDefined}},
    {98, {"<|think|>", kControl}},
    {100, {"<|channel>", kUserDefined}},
    {101, {"<channel|>", kUserDefined}},
    {105, {"<|turn>", kControl}},
    {106, {"<turn|>", kControl}},
    {107, {"\n", kNormal}},
};

class Builder {
 public:
  explicit Builder(std::size_t count) : count_(count) {}

  std::vector<std::string> tokens, merges;
  std::vector<std::int32_t> types;

  void build() {
    for (std::size_t id = 0; id < kFirstByte; ++id) {
      const auto special = kSpecial.find(id);
      if (special == kSpecial.end()) {
        add(fmt::format("<unused{}>", id), kNormal);
      } else {
        add(special->second.piece, special->second.type);
      }
    }
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), kByte);
    add(kSpace, kNormal);
    for (char letter = '!'; letter <= '~'; ++letter) add(std::string(1, letter), kNormal);
    letters_.emplace_back(kSpace);
    for (char letter = 'a'; letter <= 'z'; ++letter) letters_.emplace_back(1, letter);
    for (const std::size_t length : {2, 3, 4}) add_strings({}, length);
  }

 private:
  void add(std::string piece, TokenType type) {
    if (tokens.size() == count_) return;
    tokens.push_back(std::move(piece));
    types.push_back(type);
  }

  // All strings of `length` letters that begin with `prefix`, in order; their parts are tokens already.
  void add_strings(const std::vector<std::string>& prefix, std::size_t length) {
    for (const std::string& letter : letters_) {
      if (tokens.size() == count_) return;
      std::vector<std::string> text = prefix;
      text.push_back(letter);
      if (text.size() < length) {
        add_strings(text, length);
        continue;
      }
      add(joined(text, 0, length), kNormal);
      merge(joined(text, 0, length - 1), text.back());
      if (length > 2) merge(text.front(), joined(text, 1, length));
    }
  }

  static std::string joined(const std::vector<std::string>& text, std::size_t begin, std::size_t end) {
    std::string out;
    for (std::size_t i = begin; i < end; ++i) out += text[i];
    return out;
  }

  void merge(const std::string& left, const std::string& right) {
    if (merges.size() < kMerges) merges.push_back(left + ' ' + right);
  }

  std::size_t count_;
  std::vector<std::string> letters_;
};

}  // namespace

void add_made_up_vocabulary(GgufWriter& out, std::int64_t tokens) {
  if (tokens < 1024 || tokens > 262144) bad_input("a vocabulary of {} tokens, expected 1024 to 262144", tokens);
  Builder built(static_cast<std::size_t>(tokens));
  built.build();
  out.add_string("tokenizer.ggml.model", "gemma4");
  out.add_strings("tokenizer.ggml.tokens", built.tokens);
  out.add_f32s("tokenizer.ggml.scores", std::vector<float>(built.tokens.size(), kScore));
  out.add_i32s("tokenizer.ggml.token_type", built.types);
  out.add_strings("tokenizer.ggml.merges", built.merges);
  out.add_u32("tokenizer.ggml.bos_token_id", 2);
  out.add_u32("tokenizer.ggml.eos_token_id", 1);
  out.add_u32("tokenizer.ggml.unknown_token_id", 3);
  out.add_u32("tokenizer.ggml.padding_token_id", 0);
  out.add_u32("tokenizer.ggml.mask_token_id", 4);
  out.add_boolean("tokenizer.ggml.add_space_prefix", false);
  out.add_boolean("tokenizer.ggml.add_bos_token", true);
}

}  // namespace dgemma
