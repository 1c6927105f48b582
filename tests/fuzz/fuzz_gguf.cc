// libFuzzer target: the GGUF reader may refuse any bytes with bad_input or unsupported, and do nothing else.
#include "base/error.h"
#include "format/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dgemma;
  try {
    const GgufFile file = GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    for (const GgufValue& value : file.values()) {
      if (value.type == GgufType::string) (void)file.strings(value.key);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input && error.kind() != ErrorKind::unsupported) throw;
  }
  return 0;
}
