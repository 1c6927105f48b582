// A tokenizer.json as the metadata of a GGUF file: the inverse of tokenizer_from_gguf for gemma4 tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/gguf_writer.h"

namespace dgemma {

// Adds tokenizer.ggml.* with model "gemma4" and `vocabulary` tokens; ids without a piece become unused tokens [PADn].
// Where `stop_ids`, which end a generation, hold another id than <eos>, <turn|> and <|tool_response>, that is the
// end-of-turn token. Control tokens that carry structure (channels, tool calls, the quote token) are user-defined
// there, as in the published files, so that readers print them (spec gguf.md 2.4). Returns what such a file cannot say,
// one sentence each: notes for the user. Throws what Tokenizer::from_json throws; bad_input when there are more pieces
// than `vocabulary` or a merge cannot be written.
std::vector<std::string> tokenizer_to_gguf(std::span<const std::byte> tokenizer_json, std::int64_t vocabulary,
                                           std::span<const std::int32_t> stop_ids, GgufWriter& out);

}  // namespace dgemma
