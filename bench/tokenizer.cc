// Speed of the tokenizer on text files, and their ids for tools/reference/check_tokenizer_parity.py.
//   bench_tokenizer TOKENIZER_JSON FILE...        medians of five, MB/s and Mtok/s of one thread
//   bench_tokenizer --ids TOKENIZER_JSON FILE     the ids as little-endian 32-bit integers on standard output
#include "text/tokenizer.h"

#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "limits.h"

namespace {

constexpr int kRepetitions = 5;

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
  const double load_before = dgemma::bench::load_average();
  const dgemma::bench::Stopwatch reading;
  const dgemma::MappedFile json(argv[first]);
  const dgemma::Tokenizer tokenizer = dgemma::Tokenizer::from_json(json.bytes());
  const double reading_s = reading.wall_s();
  if (!ids_only) std::printf("load %.2f s\n", reading_s);
  nlohmann::json results = nlohmann::json::array();
  for (int i = first + 1; i < argc; ++i) {
    const dgemma::MappedFile file(argv[i]);
    if (ids_only) {
      const auto ids = tokenizer.encode(text_of(file), dgemma::SpecialTokens::parse);
      std::fwrite(ids.data(), sizeof(ids[0]), ids.size(), stdout);
      continue;
    }
    std::vector<double> wall, cpu;
    std::size_t count = 0;
    for (int run = 0; run < kRepetitions; ++run) {
      const dgemma::bench::Stopwatch time;
      count = tokenizer.encode(text_of(file), dgemma::SpecialTokens::parse).size();
      wall.push_back(time.wall_s());
      cpu.push_back(time.cpu_s());
    }
    const double seconds = dgemma::bench::median(wall);
    const double mb_per_s = static_cast<double>(text_of(file).size()) * 1e-6 / seconds;
    const double mtok_per_s = static_cast<double>(count) * 1e-6 / seconds;
    std::printf("%-32s %10zu bytes %9zu ids %7.2f MB/s %6.2f Mtok/s\n", argv[i], text_of(file).size(), count, mb_per_s,
                mtok_per_s);
    results.push_back({{"file", argv[i]},
                       {"bytes", text_of(file).size()},
                       {"ids", count},
                       {"median_s", seconds},
                       {"median_cpu_s", dgemma::bench::median(cpu)},
                       {"mb_per_s", mb_per_s},
                       {"mtok_per_s", mtok_per_s}});
  }
  if (!ids_only) {
    dgemma::bench::print_result({{"bench", "tokenizer"},
                                 {"machine", dgemma::bench::machine()},
                                 {"load_before", load_before},
                                 {"load_after", dgemma::bench::load_average()},
                                 {"read_tokenizer_s", reading_s},
                                 {"repeats", kRepetitions},
                                 {"results", results}});
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
