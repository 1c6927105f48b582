// The Gemma byte-pair tokenizer (spec chat.md section 1). Knows no model and no file format but tokenizer.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer_tables.h"

namespace dgemma {

enum class SpecialTokens {
  plain,  // control tokens in the text are ordinary characters: for text from a user
  parse,  // control tokens in the text become their ids: for templates and trusted prompts
};

// A stretch of a prompt. Control tokens are looked for in trusted stretches only.
struct TextSegment {
  std::string_view text;
  bool trusted = false;
};

// Everything a tokenizer is built from, whatever file it came in.
struct Vocabulary {
  struct Merge {
    std::int32_t left, right, product;  // ids
    std::int32_t rank;                  // the lowest goes first; on a tie the leftmost
  };
  // A token that is found in the text before any merge.
  struct Added {
    std::int32_t id;
    bool control;  // never found in text from a user, and not printed when special tokens are skipped
  };

  std::vector<std::string> pieces;  // by id; an empty one is no piece
  std::vector<Merge> merges;        // a later merge of the same pair replaces an earlier one
  std::vector<Added> added;
  bool escape_spaces = true;   // a space of the text is U+2581 in the pieces
  bool byte_fallback = false;  // pieces <0xNN> stand for bytes
  bool fuse_unknown = true;    // a run of unknown characters is one unknown token
  std::int32_t unknown = -1, bos = -1, eos = -1, pad = -1;
};

// The merges of a SentencePiece BPE vocabulary, which has a score for each piece and no list: every split of a piece
// into two pieces is a merge, and the higher score goes first. `mergeable[id]` is false for pieces that text never
// merges into (control, unknown, byte). Both spans are as long as vocabulary.pieces; throws bad_input otherwise.
void set_merges_from_scores(Vocabulary& vocabulary, std::span<const float> scores,
                            std::span<const std::uint8_t> mergeable);

// Immutable; one may serve many threads.
class Tokenizer {
 public:
  // Throws bad_input when an id is outside the vocabulary or an added token is empty.
  explicit Tokenizer(Vocabulary vocabulary);

  // From the bytes of a Hugging Face tokenizer.json with a BPE model. Throws bad_input that names what is wrong, or
  // unsupported for another kind of model.
  static Tokenizer from_json(std::span<const std::byte> bytes);

  // Ids of valid UTF-8; bad_input otherwise. Characters without a piece become byte
  // pieces, or the unknown token when the vocabulary has none. No BOS is added.
  std::vector<std::int32_t> encode(std::string_view text, SpecialTokens special) const;
  // The segments as one text: merges cross the border of two segments, control tokens do not. Each segment must be
  // valid UTF-8 by itself.
  std::vector<std::int32_t> encode(std::span<const TextSegment> segments) const;

  // The text of the ids as Hugging Face decodes it: a run of byte pieces that is not valid UTF-8 becomes one U+FFFD a
  // byte. Ids outside the vocabulary are skipped; so are control tokens when `skip_special`.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;

  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }
  // The id of a piece or control token, or -1.
  std::int32_t id_of(std::string_view piece) const;
  // The piece as the vocabulary spells it (U+2581 for a space); empty outside the vocabulary.
  std::string_view piece(std::int32_t id) const;
  bool is_control(std::int32_t id) const;
  // A piece <0xNN> that stands for one byte.
  bool is_byte(std::int32_t id) const { return id >= 0 && id < size() && byte_of_[static_cast<std::size_t>(id)] >= 0; }
  // What the id alone contributes to a text: a byte piece its byte, a control token its literal, other pieces their
  // text with U+2581 as a space where spaces are escaped; empty outside the vocabulary.
  std::string text_of(std::int32_t id) const;

  // Ids of these tokens, or -1 when the vocabulary has none.
  std::int32_t bos() const { return bos_; }
  std::int32_t eos() const { return eos_; }
  std::int32_t pad() const { return pad_; }

 private:
  std::int32_t added_at(std::string_view text, bool controls) const;
  void append_symbols(std::string_view text, std::vector<std::int32_t>& symbols) const;
  void merge_into(std::vector<std::int32_t>& symbols, std::vector<std::int32_t>& out) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::int32_t> by_piece_;
  std::vector<std::uint8_t> control_;  // by id
  std::vector<std::int16_t> byte_of_;  // by id: the byte of a byte piece, or -1
  std::int32_t byte_pieces_[256];      // by byte: its piece, or -1
  std::unordered_map<std::string, std::int32_t> added_;
  std::vector<std::uint32_t> added_lengths_[256];  // by first byte: lengths of added tokens, longest first
  CharacterTable characters_;
  PairTable pairs_;
  NeighbourFilter neighbours_;
  std::int32_t unknown_, bos_, eos_, pad_;
  bool escape_spaces_, byte_fallback_, fuse_unknown_;
};

}  // namespace dgemma
