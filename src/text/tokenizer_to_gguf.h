// A tokenizer.json as the metadata of a GGUF file: the inverse of tokenizer_from_gguf for gemma4 tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/gguf_writer.h"

namespace dgemma {

// Adds tokenizer.ggml.* with model "gemma4", `vocabulary` tokens (ids without a piece become unused tokens [PADn]),
// and returns what such a file cannot say, one sentence each: notes for the user. Control tokens that carry structure
// (channels, tool calls, the quote token) are user-defined there, as in the published files, so that readers print them
// (spec gguf.md 2.4). Throws what Tokenizer::from_json throws; bad_input when there are more pieces than `vocabulary`
// or a merge cannot be written.
std::vector<std::string> tokenizer_to_gguf(std::span<const std::byte> tokenizer_json, std::int64_t vocabulary,
                                           GgufWriter& out);

}  // namespace dgemma
