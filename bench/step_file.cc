#include "step_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/random.h"
#include "engine/session.h"
#include "limits.h"

namespace dgemma::bench {
namespace {

constexpr double kGiB = 0x1p30;

// The fraction of the file's pages that the page cache holds.
double cached_fraction(const std::string& path) {
  const MappedFile file(path);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((file.bytes().size() + page - 1) / page);
  auto* begin = const_cast<std::byte*>(file.bytes().data());
  if (resident.empty() || ::mincore(begin, file.bytes().size(), resident.data()) != 0) return 0;
  const auto count = std::count_if(resident.begin(), resident.end(), [](unsigned char flags) { return flags & 1; });
  return static_cast<double>(count) / static_cast<double>(resident.size());
}

void read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(std::size_t{4} << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) continue;
}

}  // namespace

StepFile::Memory StepFile::memory() {
  Memory out;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t kib = 0;
    fields >> name >> kib;
    if (name == "VmHWM:") out.peak = kib * 1024;
    if (name == "RssFile:") out.mapped = kib * 1024;
    if (name == "RssAnon:") out.anonymous = kib * 1024;
  }
  return out;
}

Engine StepFile::open(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) bad_input("{}: there is no such file", path);
  read_whole(path);
  cached_ = cached_fraction(path);
  const Stopwatch watch;
  Engine engine = Engine::open(path);
  open_s_ = watch.wall_s();
  if (engine.config().canvas_length == 0) {
    bad_input("{}: an autoregressive checkpoint, which has no denoising step; bench_rows measures it", path);
  }
  return engine;
}

// One sequence as `dgemma generate` runs it: a prompt that leaves room for one canvas, then two denoising steps.
void StepFile::generate(const std::string& path, std::int64_t context, int threads, Precision precision) {
  const Stopwatch watch;
  Context c(threads, precision);
  SessionSettings settings;
  settings.context = context;
  settings.denoise = engine_.defaults().denoise;
  if (context <= engine_.config().canvas_length) bad_input("a context of {} leaves no room for a prompt", context);
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(context - engine_.config().canvas_length));
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] =
        static_cast<std::int32_t>(random_below(3, 0, i, static_cast<std::uint32_t>(engine_.config().vocabulary)));
  }
  prompt_ = static_cast<std::int64_t>(prompt.size());
  Session session(engine_, settings, std::move(prompt));
  first_pass_begins_s_ = open_s_ + watch.wall_s();

  const Stopwatch passes;
  session.advance(c);
  first_chunk_s_ = passes.wall_s();
  while (session.prompt_rows_encoded() < prompt_) session.advance(c);
  prompt_s_ = passes.wall_s();
  const Stopwatch first;
  session.advance(c);
  first_step_s_ = first.wall_s();
  const Stopwatch second;
  session.advance(c);
  second_step_s_ = second.wall_s();
  memory_ = memory();
  size_bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(path));
}

StepFile::StepFile(const std::string& path, std::int64_t context, int threads, Precision precision)
    : context_(context), engine_(open(path)) {
  generate(path, context, threads, precision);
}

nlohmann::json StepFile::report() const {
  const std::int64_t own = memory_.peak - memory_.mapped, allowed = size_bytes_ + (std::int64_t{1} << 30);
  std::printf(
      "file: %.2f GiB, %.1f %% of it in the page cache; opened in %.2f s; first pass begins after %.2f s\n"
      "prompt of %lld tokens: %.2f s, its first chunk %.2f s; first two denoising steps %.2f s, %.2f s\n"
      "peak memory, context %lld: %.2f GiB (%s the file and 1 GiB, %.2f), of which %.2f GiB are the file's pages and "
      "%.2f GiB our own (%.2f still held)\n",
      static_cast<double>(size_bytes_) / kGiB, 100 * cached_, open_s_, first_pass_begins_s_,
      static_cast<long long>(prompt_), prompt_s_, first_chunk_s_, first_step_s_, second_step_s_,
      static_cast<long long>(context_), static_cast<double>(memory_.peak) / kGiB,
      memory_.peak <= allowed ? "within" : "ABOVE", static_cast<double>(allowed) / kGiB,
      static_cast<double>(memory_.mapped) / kGiB, static_cast<double>(own) / kGiB,
      static_cast<double>(memory_.anonymous) / kGiB);
  return {{"file_bytes", size_bytes_},
          {"cached", cached_},
          {"open_s", open_s_},
          {"open_to_first_pass_s", first_pass_begins_s_},
          {"prompt_tokens", prompt_},
          {"prompt_s", prompt_s_},
          {"first_chunk_s", first_chunk_s_},
          {"first_step_s", first_step_s_},
          {"second_step_s", second_step_s_},
          {"session_context", context_},
          {"peak_bytes", memory_.peak},
          {"file_mapped_bytes", memory_.mapped},
          {"own_peak_bytes", own},
          {"anonymous_bytes", memory_.anonymous}};
}

}  // namespace dgemma::bench
