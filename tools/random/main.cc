// random_checkpoint: writes a GGUF file of random weights in the shapes of DiffusionGemma 26B-A4B.
//   random_checkpoint big.gguf --type q4_k_m --layers 30
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "engine/write_weights.h"
#include "random/checkpoint.h"
#include "random/shapes.h"

namespace dgemma {
namespace {

struct Options {
  std::string path, architecture = "diffusion-gemma", type = "q4_k_m";
  std::int64_t layers = 30;
  std::uint64_t seed = 0;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool force = false, small = false, plan = false;
};

struct Interrupted {};

void run(const Options& options) {
  RandomCheckpoint checkpoint;
  checkpoint.config = options.small ? small_config(options.layers) : diffusion_gemma_config(options.layers);
  if (options.architecture == "gemma4") checkpoint.config.canvas_length = 0;
  checkpoint.mix = weight_mix_from_name(options.type).value();
  checkpoint.seed = options.seed;
  const std::uint64_t bytes = random_checkpoint_bytes(checkpoint);
  std::map<DType, int> types;
  for (const TensorInfo& tensor : random_tensors(checkpoint)) ++types[tensor.dtype];
  std::string counts;
  for (const auto& [type, count] : types) counts += fmt::format(" {} {}", count, dtype_name(type));
  fmt::print(stderr, "{}: {} bytes ({:.2f} GiB), tensors:{}\n", options.path, bytes,
             static_cast<double>(bytes) / 0x1p30, counts);
  if (options.plan) return;
  GgufOutput output;
  output.path = options.path;
  output.overwrite = options.force;
  check_output(output, {});
  catch_interrupt();
  ProgressLine line;
  const Stopwatch watch;
  write_random_checkpoint(checkpoint, options.path, options.threads, [&](const RandomProgress& p) {
    if (interrupted()) throw Interrupted();
    line.show(fmt::format("{:3}% [{}/{}] {}", 100 * p.bytes_done / std::max<std::uint64_t>(p.bytes_total, 1),
                          p.tensor + 1, p.tensors, p.name));
  });
  line.erase();
  fmt::print(stderr, "written in {:.1f} s\n", watch.seconds());
}

}  // namespace
}  // namespace dgemma

int main(int argc, char** argv) {
  dgemma::Options options;
  CLI::App app("Writes a GGUF file of random weights in the shapes of DiffusionGemma 26B-A4B, for measurements");
  app.add_option("output", options.path, "the .gguf file to write")->required();
  app.add_option("--arch", options.architecture, "diffusion-gemma, or its autoregressive sibling gemma4")
      ->check(CLI::IsMember({"diffusion-gemma", "gemma4"}))
      ->capture_default_str();
  app.add_option("--type", options.type, "q4_k_m (the published mix), q8_0, q4_0 or bf16")
      ->check(CLI::IsMember({"q4_k_m", "q8_0", "q4_0", "bf16"}, CLI::ignore_case))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "layers; the model has 30")->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("-t,--threads", options.threads)->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_flag("--force", options.force, "overwrite the output");
  app.add_flag("--small", options.small, "the same parts in about a megabyte, for tests");
  app.add_flag("--plan", options.plan, "say how large the file will be, and write nothing");
  app.footer(
      "Examples:\n"
      "  random_checkpoint big.gguf                                        # 30 layers, 16.8 GB\n"
      "  random_checkpoint six.gguf --arch gemma4 --layers 6               # a file that llama.cpp reads too\n"
      "  random_checkpoint big.gguf --type bf16 --plan");
  try {
    app.parse(argc, argv);
    dgemma::run(options);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const dgemma::Interrupted&) {
    std::fprintf(stderr, "random_checkpoint: interrupted; no file was written\n");
    return 130;
  } catch (const dgemma::Error& error) {
    std::fprintf(stderr, "random_checkpoint: %s\n", error.what());
    return error.kind() == dgemma::ErrorKind::bad_input ? 2 : 4;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_checkpoint: %s\n", error.what());
    return 70;
  }
}
