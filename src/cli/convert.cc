// dgemma convert: a Hugging Face directory in, one GGUF file out.
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "cli/commands.h"
#include "cli/gguf_output.h"
#include "engine/convert_gguf.h"

namespace dgemma {
namespace {

struct Options {
  std::string model;
  ConvertSettings settings;
  OutputOptions output;
};

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  try {
    const Converted done = convert_to_gguf(options.model, options.settings, gguf_output(options.output));
    for (const std::string& note : done.notes) fmt::print(stderr, "note: {}\n", note);
    show_written(options.output, done.written,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  } catch (const Interrupted&) {
    fmt::print(stderr, "\ninterrupted; {} was not written\n", options.output.path);
    return 130;
  }
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, int& result) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("convert", "Make a GGUF file of a Hugging Face directory");
  command->add_option("-m,--model", o->model, "directory with config.json, safetensors and tokenizer.json")->required();
  add_output_options(*command, o->output, "as they are");
  command->add_option("--name", o->settings.name, "the model's name in the file (default: the directory's)");
  command->add_flag("--no-tokenizer", o->settings.without_tokenizer, "convert the weights alone");
  command->footer(
      "The text model of a DiffusionGemma, architecture diffusion-gemma. Norms, scales and routers become F32. The\n"
      "vision tower is left out.\n"
      "Examples:\n"
      "  dgemma convert -m model-directory -o model-BF16.gguf\n"
      "  dgemma convert -m model-directory -o model-Q4_K_M.gguf --type Q4_K_M");
  command->callback([o, &result] { result = run(*o); });
}

}  // namespace dgemma
