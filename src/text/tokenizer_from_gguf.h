// The tokenizer that a GGUF file carries in its metadata.
#pragma once

#include "format/gguf.h"
#include "text/tokenizer.h"

namespace dgemma {

// Reads tokenizer.ggml.*: model "gemma4" (ranked merges) or "llama" (SentencePiece scores, as in Gemma 3 files).
// A control token (type 3) is a control token here; so is each user-defined token (type 4) of a gemma4 file, where
// converters mark some control tokens that way so that they print (spec chat.md 1.6), and the unknown token.
// User-defined tokens of a llama file are found in every text. Throws bad_input when a list is missing or does not
// fit, unsupported for another model or a file that asks for a space before the text.
Tokenizer tokenizer_from_gguf(const GgufFile& file);

}  // namespace dgemma
