// config.json and generation_config.json from strangers: only bad_input and unsupported may come out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "engine/engine.h"
#include "model/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tolerate = [](const auto& parse) {
    try {
      parse();
    } catch (const dgemma::Error& error) {
      if (error.kind() == dgemma::ErrorKind::internal || error.kind() == dgemma::ErrorKind::resource) throw;
    }
  };
  tolerate([&] { dgemma::config_from_hugging_face(text); });
  tolerate([&] { dgemma::parse_generation_config(text); });
  return 0;
}
