// libFuzzer target: a tokenizer.json may be refused with bad_input or unsupported, and nothing else happens; one that
// loads encodes and decodes any text. The input is a file, then a zero byte, then a text.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dgemma;
  const std::uint8_t* end = std::find(data, data + size, 0);
  const std::string_view text(reinterpret_cast<const char*>(end), static_cast<std::size_t>(data + size - end));
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(std::as_bytes(std::span(data, end)));
    const auto ids = tokenizer.encode(text, SpecialTokens::parse);
    (void)tokenizer.decode(ids, true);
    StreamDecoder decoder(tokenizer, false);
    (void)decoder.push(ids);
    (void)decoder.finish();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input && error.kind() != ErrorKind::unsupported) throw;
  }
  return 0;
}
