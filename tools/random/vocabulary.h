// A made-up vocabulary of a chosen size, for checkpoints without a real one.
#pragma once

#include <cstdint>

#include "format/gguf_writer.h"

namespace dgemma {

// Adds tokenizer.ggml.* with model "gemma4": the special tokens at Gemma 4's ids, byte tokens, printable ASCII, then
// strings of two, three and four letters with merges, so that any text has tokens. With 262,144 tokens there are as
// many merges (514,906) as the real vocabulary has, so that opening such a file costs what opening the real one does.
// `tokens`: 1,024 to 262,144; bad_input otherwise.
void add_made_up_vocabulary(GgufWriter& out, std::int64_t tokens);

}  // namespace dgemma
