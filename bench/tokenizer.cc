// Speed of the tokenizer on text files, and their ids for tools/reference/check_tokenizer_parity.py.
//   bench_tokenizer TOKENIZER_JSON FILE...        best of five, MB/s and Mtok/s of one thread
//   bench_tokenizer --ids TOKENIZER_JSON FILE     the ids as little-endian 32-bit integers on standard output
#include "text/tokenizer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string_view text_of(const dgemma::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

int main(int argc, char** argv) try {
  const bool ids_only = argc > 1 && std::string_view(argv[1]) == "--ids";
  const int first = ids_only ? 2 : 1;
  if (argc < first + 2) {
    std::fprintf(stderr, "usage: bench_tokenizer [--ids] TOKENIZER_JSON FILE...\n");
    return 2;
  }
  const Clock::time_point start = Clock::now();
  const dgemma::MappedFile json(argv[first]);
  const dgemma::Tokenizer tokenizer = dgemma::Tokenizer::from_json(json.bytes());
  if (!ids_only) std::printf("load %.2f s\n", seconds_since(start));
  for (int i = first + 1; i < argc; ++i) {
    const dgemma::MappedFile file(argv[i]);
    if (ids_only) {
      const auto ids = tokenizer.encode(text_of(file), dgemma::SpecialTokens::parse);
      std::fwrite(ids.data(), sizeof(ids[0]), ids.size(), stdout);
      continue;
    }
    double best = 1e30;
    std::size_t count = 0;
    for (int run = 0; run < 5; ++run) {
      const Clock::time_point begin = Clock::now();
      count = tokenizer.encode(text_of(file), dgemma::SpecialTokens::parse).size();
      best = std::min(best, seconds_since(begin));
    }
    std::printf("%-32s %10zu bytes %9zu ids %7.2f MB/s %6.2f Mtok/s\n", argv[i], text_of(file).size(), count,
                static_cast<double>(text_of(file).size()) * 1e-6 / best, static_cast<double>(count) * 1e-6 / best);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
