// libFuzzer target: the safetensors reader may refuse any bytes with bad_input or unsupported, and do nothing else.
#include "base/error.h"
#include "format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dgemma;
  try {
    (void)parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input && error.kind() != ErrorKind::unsupported) throw;
  }
  return 0;
}
