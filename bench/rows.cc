// 256 rows of a checkpoint file through all layers, then the head and the sampler for every row: what
// tools/reference/compare_llama_speed.py puts beside llama.cpp. The rows are a causal prompt, so that a file of the
// autoregressive sibling, which other programs read, does too.
//   bench_rows --model six.gguf
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "diffusion/sampler.h"
#include "engine/engine.h"
#include "limits.h"
#include "model/forward.h"
#include "ops/head.h"

namespace dgemma::bench {
namespace {

struct Options {
  std::string model, precision = "int8";
  std::int64_t rows = 256;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int repeats = 5;
  bool wait = false;
};

void run(const Options& options) {
  if (options.rows < 1 || options.rows > 4096 || options.repeats < 5) {
    bad_input("expected --rows 1 .. 4096 and --repeats >= 5");
  }
  const Engine engine = Engine::open(options.model);
  const ModelConfig& config = engine.config();
  Context c(options.threads, kPrecisions.at(options.precision));
  KvCache cache(config, options.rows);
  Activations activations;
  Matrix normed;
  HeadBuffers buffers;
  const auto count = static_cast<std::size_t>(options.rows);
  std::vector<std::int32_t> ids(count);
  const auto vocabulary = static_cast<std::uint32_t>(config.vocabulary);
  const auto random_id = [&](std::uint64_t stream, std::size_t i) {
    return static_cast<std::int32_t>(random_below(1, stream, i, vocabulary));
  };
  for (std::size_t i = 0; i < count; ++i) ids[i] = random_id(0, i);
  std::vector<RowDraw> draws(count);
  for (std::size_t i = 0; i < count; ++i) draws[i] = {0.6f, 1, 1, i};
  std::vector<RowPrediction> predictions(count);
  const auto step = entropy_bound_step(0.1f);
  const StepNoise noise{[&](std::int64_t i) { return random_id(2, static_cast<std::size_t>(i)); },
                        [](std::int64_t i) { return random_uniform(1, 3, static_cast<std::uint64_t>(i)); }};

  double layers_s = 0;
  const auto pass = [&] {
    cache.clear();
    std::vector<std::int32_t> canvas = ids;
    std::vector<std::uint8_t> accepted(count);
    const Stopwatch watch;
    const Pass rows({{Role::encoder, options.rows, &cache}});
    embed_pass(c, config, engine.weights(), rows, ids, {}, activations);
    stack_forward(c, config, engine.weights(), rows, activations);
    layers_s = watch.wall_s();
    const View hidden = normed.reshape(options.rows, config.hidden);
    final_norm(c, config, engine.weights(), hidden, activations.slots().x);
    head_predict(c, predictions, {}, hidden, engine.weights().head, config.final_logit_softcapping, draws, {}, buffers);
    step->apply(canvas, accepted, predictions, 24, noise);
    return watch.wall_s();
  };
  pass();
  std::vector<double> whole, layers;
  for (int i = 0; i < options.repeats; ++i) {
    if (options.wait) {
      std::printf("ready\n");
      std::fflush(stdout);
      if (std::string line; !std::getline(std::cin, line)) return;
    }
    whole.push_back(pass());
    layers.push_back(layers_s);
  }
  std::printf("%lld rows: %.3f s, of which layers %.3f s (medians of %d)\n", static_cast<long long>(options.rows),
              median(whole), median(layers), options.repeats);
  print_result({{"bench", "rows"},
                {"machine", machine()},
                {"model", options.model},
                {"precision", options.precision},
                {"rows", options.rows},
                {"threads", options.threads},
                {"load", load_average()},
                {"whole_s", whole},
                {"layers_s", layers}});
}

}  // namespace
}  // namespace dgemma::bench

int main(int argc, char** argv) {
  dgemma::bench::Options options;
  CLI::App app("Rows of a checkpoint file through all layers, head and sampler");
  app.add_option("--model", options.model, "the .gguf file")->required();
  app.add_option("--precision", options.precision, "of activations: f32, bf16 or int8")
      ->check(CLI::IsMember(dgemma::kPrecisions))
      ->capture_default_str();
  app.add_option("--rows", options.rows)->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--repeats", options.repeats, "measured passes, at least 5")->capture_default_str();
  app.add_flag("--wait", options.wait, "say ready and wait for a line before each pass, to take turns with another");
  app.footer("Example:\n  bench_rows --model six.gguf --threads 2");
  CLI11_PARSE(app, argc, argv);
  try {
    dgemma::bench::run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
