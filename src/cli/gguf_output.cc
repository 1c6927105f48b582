#include "cli/gguf_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/show.h"

namespace dgemma {
namespace {

std::string size_text(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", size / 1024);
  if (bytes < 1 << 30) return fmt::format("{:.1f} MiB", size / (1 << 20));
  return fmt::format("{:.2f} GiB", size / (1 << 30));
}

std::string progress_text(const WriteProgress& p) {
  const auto percent = static_cast<int>(100 * p.bytes_done / std::max<std::uint64_t>(p.bytes_total, 1));
  return fmt::format("{:3}% [{}/{}] {} {} -> {}", percent, p.tensor + 1, p.tensors, p.name, dtype_name(p.from),
                     dtype_name(p.to));
}

std::string joined_names() {
  std::string out;
  for (const std::string& name : weight_mix_names()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

void add_output_options(CLI::App& command, OutputOptions& options, const char* default_type) {
  command.add_option("-o,--output", options.path, "the .gguf file to write")->required();
  const std::string choices = "type of the matrices: " + joined_names();
  auto* type = command.add_option("--type", options.type,
                                  default_type == nullptr ? choices : choices + " (default: " + default_type + ")");
  if (default_type == nullptr) type->required();
  command.add_option("-t,--threads", options.threads, "threads (default: all cores)")->check(CLI::Range(1, 1024));
  command.add_flag("--force", options.force, "overwrite the output");
}

GgufOutput gguf_output(const OutputOptions& options) {
  GgufOutput out;
  out.path = options.path;
  // Other names are not opened as GGUF again.
  if (out.path.extension() != ".gguf") bad_input("{}: the output's name must end in .gguf", options.path);
  if (!options.type.empty()) {
    const auto mix = weight_mix_from_name(options.type);
    if (!mix) bad_input("--type {}: expected one of {}", options.type, joined_names());
    out.mix = *mix;
  }
  out.overwrite = options.force;
  out.requantize = options.requantize;
  out.threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  catch_interrupt();
  out.progress = [line = std::make_shared<ProgressLine>()](const WriteProgress& progress) {
    if (interrupted()) throw Interrupted();
    line->show(progress_text(progress));
  };
  return out;
}

void show_written(const OutputOptions& options, const WrittenTypes& written, double seconds) {
  fmt::print(stderr, "{}: {} in {:.1f} s\n", options.path, size_text(written.file_bytes), seconds);
  for (const auto& [type, total] : written.types) {
    fmt::print(stderr, "  {}: {} tensors, {}\n", dtype_name(type), total.tensors, size_text(total.bytes));
  }
}

}  // namespace dgemma
