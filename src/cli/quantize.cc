// dgemma quantize: a GGUF file in, the same model with other weight types out.
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "cli/commands.h"
#include "cli/gguf_output.h"
#include "engine/quantize_gguf.h"

namespace dgemma {
namespace {

struct Options {
  std::string model;
  OutputOptions output;
};

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  try {
    const WrittenTypes written = quantize_gguf(options.model, gguf_output(options.output));
    show_written(options.output, written,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  } catch (const Interrupted&) {
    fmt::print(stderr, "\ninterrupted; {} was not written\n", options.output.path);
    return 130;
  }
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, int& result) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("quantize", "Put the weights of a GGUF file into other types");
  command->add_option("-m,--model", o->model, "the .gguf file, or the first of its parts")->required();
  add_output_options(*command, o->output, nullptr);
  command->add_flag("--requantize", o->output.requantize,
                    "also from one quantised type to another, which rounds twice");
  command->footer(
      "Q4_K_M and Q5_K_M are the mixes of the published DiffusionGemma files; the other types are used for every\n"
      "matrix. Norms, scales and routers are F32. Rows that are no multiple of a type's block fall back: Q4_K to "
      "Q5_0,\n"
      "Q5_K to Q5_1, Q6_K to Q8_0, and what 32 does not divide to 16 bits.\n"
      "Examples:\n"
      "  dgemma quantize -m model-BF16.gguf -o model-Q4_K_M.gguf --type Q4_K_M\n"
      "  dgemma quantize -m model-BF16-00001-of-00003.gguf -o model-Q8_0.gguf --type Q8_0 --threads 16");
  command->callback([o, &result] { result = run(*o); });
}

}  // namespace dgemma
