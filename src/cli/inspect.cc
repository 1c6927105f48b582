// dgemma inspect: what a checkpoint holds, and what this machine can run.
#include <fmt/core.h>

#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/show.h"
#include "engine/engine.h"
#include "kernels/table.h"

namespace dgemma {
namespace {

void print_machine() {
  int count = 0;
  const KernelTable* const* tables = runnable_kernel_tables(&count);
  fmt::print("kernel tables:");
  for (int i = 0; i < count; ++i) fmt::print(" {}", tables[i]->name);
  const KernelTable* chosen = kernel_table();
  fmt::print("\nchosen: {}\n",
             chosen == nullptr ? "none (DGEMMA_ISA names one that this CPU cannot run)" : chosen->name);
}

void print_model(const std::string& path) {
  const Engine engine = open_model(path);
  const ModelConfig& config = engine.config();
  std::int64_t sliding = 0;
  for (const LayerConfig& layer : config.layers) sliding += layer.sliding ? 1 : 0;
  fmt::print("layers: {} ({} sliding, {} full)\nhidden: {}\nvocabulary: {}\nsliding window: {}\n", config.layers.size(),
             sliding, static_cast<std::int64_t>(config.layers.size()) - sliding, config.hidden, config.vocabulary,
             config.sliding_window);
  if (config.experts > 0) fmt::print("experts: {}, {} used\n", config.experts, config.experts_used);
  if (config.canvas_length > 0) {
    const DenoiseSettings& denoise = engine.defaults().denoise;
    fmt::print("canvas: {}\ndenoising: {} steps, temperature {} to {}, entropy bound {}, confidence {}, stability {}\n",
               config.canvas_length, denoise.max_denoising_steps, denoise.t_max, denoise.t_min, denoise.entropy_bound,
               denoise.confidence_threshold, denoise.stability_threshold);
  } else {
    fmt::print("canvas: none (autoregressive only)\n");
  }
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> types;  // name -> tensors, bytes
  for (const TensorInfo& tensor : engine.checkpoint().tensors()) {
    auto& [tensors, bytes] = types[std::string(dtype_name(tensor.dtype))];
    ++tensors;
    bytes += static_cast<std::int64_t>(tensor.bytes.size());
  }
  for (const auto& [name, entry] : types) fmt::print("{}: {} tensors, {} bytes\n", name, entry.first, entry.second);
}

}  // namespace

void add_inspect(CLI::App& app, int&) {
  struct Options {
    std::string model;
    bool machine = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a checkpoint holds, or what this machine can run");
  auto* model = command->add_option("-m,--model", options->model, "directory with config.json and safetensors");
  auto* machine = command->add_flag("--machine", options->machine, "show the kernel tables instead");
  model->excludes(machine);
  command->footer("Examples:\n  dgemma inspect -m model-directory\n  dgemma inspect --machine");
  command->callback([options] {
    if (options->machine) return print_machine();
    if (options->model.empty()) throw CLI::RequiredError("-m or --machine");
    print_model(options->model);
  });
}

}  // namespace dgemma
