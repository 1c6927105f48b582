// dgemma perplexity: how well the autoregressive role predicts a text.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

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
  std::optional<Precision> compare;
};

// Rows whose logits are held at once: 32 x 262,144 are 32 MiB.
constexpr std::int64_t kLogitRows = 32;

// The encoder role over one window of tokens: logits, a few rows at a time.
class Window {
 public:
  Window(Context& c, const Engine& engine, std::int64_t tokens)
      : c_(c), engine_(engine), cache_(engine.config(), tokens) {}

  void encode(std::span<const std::int32_t> chunk) {
    const Pass pass({{Role::encoder, static_cast<std::int64_t>(chunk.size()), &cache_}});
    embed_pass(c_, engine_.config(), engine_.weights(), pass, chunk, {}, activations_);
    stack_forward(c_, engine_.config(), engine_.weights(), pass, activations_);
  }
  // [rows, vocabulary] of the chunk's rows from `row` on, until the next call.
  View logits(std::int64_t row, std::int64_t rows) {
    const ModelConfig& config = engine_.config();
    const View normed = normed_.reshape(rows, config.hidden), out = logits_.reshape(rows, config.vocabulary);
    final_norm(c_, config, engine_.weights(), normed, activations_.slots().x.slice(row, rows));
    head_logits(c_, out, normed, engine_.weights().head, config.final_logit_softcapping);
    return out;
  }

 private:
  Context& c_;
  const Engine& engine_;
  KvCache cache_;
  Activations activations_;
  Matrix normed_, logits_;
};

// log(sum of exp z), and where z is largest.
struct Normaliser {
  double log_sum;
  std::int64_t argmax;
  explicit Normaliser(std::span<const float> z) {
    const auto largest = std::max_element(z.begin(), z.end());
    argmax = largest - z.begin();
    double sum = 0;
    for (const float value : z) sum += std::exp(double{value} - *largest);
    log_sum = *largest + std::log(sum);
  }
};

// How far one precision's predictions are from another's, over all tokens.
struct Comparison {
  std::int64_t tokens = 0, agreeing = 0;  // agreeing: the likeliest token is the same
  double divergence = 0;                  // sum of KL(reference || tested), nats
  double difference = 0, magnitude = 0;   // sums of squares: of the logits' differences, of the reference's logits

  void add(std::span<const float> z, const Normaliser& tested, std::span<const float> reference) {
    const Normaliser known(reference);
    ++tokens;
    agreeing += tested.argmax == known.argmax ? 1 : 0;
    for (std::size_t v = 0; v < z.size(); ++v) {
      const double log_p = reference[v] - known.log_sum, apart = double{z[v]} - reference[v];
      divergence += std::exp(log_p) * (log_p - (z[v] - tested.log_sum));
      difference += apart * apart;
      magnitude += double{reference[v]} * reference[v];
    }
  }
};

// Natural-log probabilities of ids[1] .. ids[n-1], each given all before it in the window. With a `reference` context
// the same tokens go through that too.
std::vector<double> log_probabilities(Context& c, Context* reference, const Engine& engine,
                                      std::span<const std::int32_t> ids, Comparison& comparison) {
  Window tested(c, engine, static_cast<std::int64_t>(ids.size()));
  std::optional<Window> known;
  if (reference != nullptr) known.emplace(*reference, engine, static_cast<std::int64_t>(ids.size()));
  std::vector<double> out;
  constexpr std::size_t kChunk = 256;
  for (std::size_t begin = 0; begin < ids.size(); begin += kChunk) {
    const auto chunk = ids.subspan(begin, std::min(kChunk, ids.size() - begin));
    tested.encode(chunk);
    if (known) known->encode(chunk);
    const auto chunk_rows = static_cast<std::int64_t>(chunk.size());
    for (std::int64_t row = 0; row < chunk_rows; row += kLogitRows) {
      const std::int64_t rows = std::min(kLogitRows, chunk_rows - row);
      const View logits = tested.logits(row, rows);
      const View known_logits = known ? known->logits(row, rows) : View{};
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::size_t target = begin + static_cast<std::size_t>(row + i) + 1;
        if (target >= ids.size()) break;
        const std::span<const float> z(logits.row(i), static_cast<std::size_t>(logits.cols));
        const Normaliser sum(z);
        out.push_back(z[static_cast<std::size_t>(ids[target])] - sum.log_sum);
        if (known) comparison.add(z, sum, {known_logits.row(i), z.size()});
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
  std::optional<Context> reference;
  if (options.compare) reference.emplace(c.pool().threads(), *options.compare);
  Comparison comparison;
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
    const std::vector<double> values =
        log_probabilities(c, reference ? &*reference : nullptr, engine, part, comparison);
    for (std::size_t i = 0; i < values.size(); ++i) {
      total += values[i];
      if (log.is_open()) log << part[i + 1] << ' ' << fmt::format("{:.6f}", values[i]) << '\n';
    }
    count += static_cast<std::int64_t>(values.size());
    fmt::print(stderr, "{} of {} tokens, perplexity {:.4f}\n", std::min(begin + step, ids.size()), ids.size(),
               std::exp(-total / static_cast<double>(count)));
  }
  fmt::print("{:.6f}\n", std::exp(-total / static_cast<double>(count)));
  if (reference) {
    const auto tokens = static_cast<double>(comparison.tokens);
    fmt::print("mean KL {:.6f} nats, the same likeliest token {:.2f} %, relative error of logits {:.5f}\n",
               comparison.divergence / tokens, 100 * static_cast<double>(comparison.agreeing) / tokens,
               std::sqrt(comparison.difference / comparison.magnitude));
  }
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
  command
      ->add_option_function<std::string>(
          "--compare", [o](const std::string& name) { o->compare = kPrecisions.at(name); },
          "run the text in this precision too, and print how far the predictions are from it")
      ->check(CLI::IsMember(kPrecisions))
      ->option_text("f32|bf16|int8");
  command->add_option("--log-probabilities", o->log_probabilities,
                      "write a line for each token: id and natural log probability");
  command->footer(
      "Example:\n  dgemma perplexity -m gemma-3-270m.gguf -f text.txt -n 2048\n"
      "  dgemma perplexity -m gemma-3-270m.gguf -f text.txt -n 2048 --precision int8 --compare f32");
  command->callback([o, &result] {
    catch_interrupt();
    run(*o);
    result = interrupted() ? 130 : 0;
  });
}

}  // namespace dgemma
