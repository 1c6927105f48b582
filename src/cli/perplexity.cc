// dgemma perplexity: how well the autoregressive role predicts a text.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/sampling_options.h"
#include "cli/show.h"
#include "model/forward.h"
#include "ops/head.h"

namespace dgemma {
namespace {

struct Options {
  SamplingOptions sampling;
  std::string file, log_probabilities;
};

// Rows whose logits are held at once: 32 x 262,144 are 32 MiB.
constexpr std::int64_t kLogitRows = 32;

// Natural-log probabilities of ids[1] .. ids[n-1], each given all before it in the window.
std::vector<double> log_probabilities(Context& c, const Engine& engine, std::span<const std::int32_t> ids) {
  const ModelConfig& config = engine.config();
  KvCache cache(config, static_cast<std::int64_t>(ids.size()));
  Activations activations;
  Matrix normed_store, logits_store;
  std::vector<double> out;
  constexpr std::size_t kChunk = 256;
  for (std::size_t begin = 0; begin < ids.size(); begin += kChunk) {
    const auto chunk = ids.subspan(begin, std::min(kChunk, ids.size() - begin));
    const Pass pass({{Role::encoder, static_cast<std::int64_t>(chunk.size()), &cache}});
    embed_pass(c, config, engine.weights(), pass, chunk, {}, activations);
    stack_forward(c, config, engine.weights(), pass, activations);
    for (std::int64_t row = 0; row < pass.rows(); row += kLogitRows) {
      const std::int64_t rows = std::min(kLogitRows, pass.rows() - row);
      const View normed = normed_store.reshape(rows, config.hidden);
      const View logits = logits_store.reshape(rows, config.vocabulary);
      final_norm(c, config, engine.weights(), normed, activations.slots().x.slice(row, rows));
      head_logits(c, logits, normed, engine.weights().head, config.final_logit_softcapping);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::size_t target = begin + static_cast<std::size_t>(row + i) + 1;
        if (target >= ids.size()) break;
        const float* z = logits.row(i);
        const float largest = *std::max_element(z, z + logits.cols);
        double sum = 0;
        for (std::int64_t v = 0; v < logits.cols; ++v) sum += std::exp(double{z[v]} - largest);
        out.push_back(z[ids[target]] - largest - std::log(sum));
      }
    }
  }
  return out;
}

void run(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  if (!in) bad_input("{}: the text cannot be opened", options.file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Engine engine = open_model(options.sampling.model);
  std::vector<std::int32_t> ids = engine.tokenizer().encode(text, SpecialTokens::plain);
  if (options.sampling.max_tokens > 0 && static_cast<std::int64_t>(ids.size()) > options.sampling.max_tokens) {
    ids.resize(static_cast<std::size_t>(options.sampling.max_tokens));
  }
  if (ids.size() < 2) bad_input("{}: {} tokens are too few to measure", options.file, ids.size());
  const std::int32_t bos = engine.tokenizer().bos();
  const std::size_t window = static_cast<std::size_t>(options.sampling.context > 0 ? options.sampling.context : 512);
  if (window < 2) bad_input("a context of {} leaves nothing to predict", window);

  Context c = make_context(options.sampling);
  std::ofstream log;
  if (!options.log_probabilities.empty()) {
    log.open(options.log_probabilities);
    if (!log) fail(ErrorKind::resource, "{}: cannot be written", options.log_probabilities);
  }
  double total = 0;
  std::int64_t count = 0;
  // Each window starts with <bos>, as a text does; the window's first token counts too, given <bos>.
  const std::size_t step = bos >= 0 ? window - 1 : window;
  for (std::size_t begin = 0; begin < ids.size() && !interrupted(); begin += step) {
    std::vector<std::int32_t> part;
    if (bos >= 0) part.push_back(bos);
    part.insert(part.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                ids.begin() + static_cast<std::ptrdiff_t>(std::min(begin + step, ids.size())));
    if (part.size() < 2) break;
    const std::vector<double> values = log_probabilities(c, engine, part);
    for (std::size_t i = 0; i < values.size(); ++i) {
      total += values[i];
      if (log.is_open()) log << part[i + 1] << ' ' << fmt::format("{:.6f}", values[i]) << '\n';
    }
    count += static_cast<std::int64_t>(values.size());
    fmt::print(stderr, "{} of {} tokens, perplexity {:.4f}\n", std::min(begin + step, ids.size()), ids.size(),
               std::exp(-total / static_cast<double>(count)));
  }
  fmt::print("{:.6f}\n", std::exp(-total / static_cast<double>(count)));
}

}  // namespace

void add_perplexity(CLI::App& app, int& result) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well the autoregressive role predicts a text");
  command->add_option("-m,--model", o->sampling.model, "directory or .gguf file")->required();
  command->add_option("-f,--file", o->file, "the text")->required();
  command->add_option("-c,--context", o->sampling.context, "tokens in a window, <bos> included (default 512)");
  command->add_option("-n,--max-tokens", o->sampling.max_tokens, "only the first tokens of the text");
  command->add_option("-t,--threads", o->sampling.threads, "threads (default: all cores)")->check(CLI::Range(1, 1024));
  add_precision_option(*command, o->sampling.precision);
  command->add_option("--log-probabilities", o->log_probabilities,
                      "write a line for each token: id and natural log probability");
  command->footer("Example:\n  dgemma perplexity -m gemma-3-270m.gguf -f text.txt -n 2048");
  command->callback([o, &result] {
    catch_interrupt();
    run(*o);
    result = interrupted() ? 130 : 0;
  });
}

}  // namespace dgemma
