// Text out of ids that arrive in pieces: one token or one canvas at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "text/tokenizer.h"

namespace dgemma {

// A character may be spelt by several byte pieces, and a canvas may end inside it. What push() returns is always whole
// characters; at most three bytes wait for the next call. Equal to Tokenizer::decode of all ids together, except that
// a run of byte pieces that is only partly valid keeps its valid characters here: what has been sent cannot be taken
// back (spec chat.md 1.7).
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special) : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that these ids complete. Ids outside the vocabulary are skipped.
  std::string push(std::span<const std::int32_t> ids);
  // The end of the stream: one U+FFFD for each byte that still waits. The decoder is then as new.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string waiting_;  // the start of a character, 0 .. 3 bytes
};

}  // namespace dgemma
