// The Gemma byte-pair tokenizer (spec chat.md section 1). Knows no model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dgemma {

enum class SpecialTokens {
  plain,  // control tokens in the text are ordinary characters: for text from a user
  parse,  // control tokens in the text become their ids: for templates and trusted prompts
};

class Tokenizer {
 public:
  // From the bytes of a Hugging Face tokenizer.json with a BPE model. Throws bad_input that names what is wrong, or
  // unsupported for another kind of model.
  static Tokenizer from_json(std::span<const std::byte> bytes);

  // Ids of valid UTF-8; bad_input otherwise. A space is written as U+2581; characters without a piece become byte
  // pieces, or the unknown token when the vocabulary has none.
  std::vector<std::int32_t> encode(std::string_view text, SpecialTokens special) const;

  // The text of the ids as Hugging Face decodes it: a run of byte pieces that is not valid UTF-8 becomes one U+FFFD a
  // byte. Ids outside the vocabulary are skipped; so are control tokens when `skip_special`.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;

  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }
  // The id of a piece or control token, or -1.
  std::int32_t id_of(std::string_view piece) const;
  bool is_control(std::int32_t id) const;
  // A piece <0xNN> that stands for one byte.
  bool is_byte(std::int32_t id) const { return id >= 0 && id < size() && byte_of_[static_cast<std::size_t>(id)] >= 0; }
  // What the id alone contributes to a text: a byte piece its byte, a control token its literal, other pieces their
  // text with U+2581 as a space; empty outside the vocabulary.
  std::string text_of(std::int32_t id) const;

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t product;
  };

  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void merge(std::vector<std::int32_t>& symbols) const;

  std::vector<std::string> pieces_;
  std::vector<std::uint8_t> control_;   // by id
  std::vector<std::int16_t> byte_of_;   // by id: the byte of a byte piece, or -1
  std::vector<std::int32_t> controls_;  // ids of control tokens, longest text first
  std::unordered_map<std::string, std::int32_t> by_piece_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // left id << 32 | right id
  std::int32_t byte_pieces_[256];
  std::int32_t unknown_ = -1;
  bool byte_fallback_ = false;
};

}  // namespace dgemma
