// dgemma generate: a prompt in, the answer on standard output, everything else on standard error.
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "engine/session.h"

namespace dgemma {
namespace {

std::atomic<bool> interrupted{false};

struct Options {
  std::string model, prompt, prompt_file, mode = "diffusion", metrics;
  std::int64_t max_tokens = 0, context = 0;
  int threads = 0;
  std::uint64_t seed = 0;
  float temperature = -1, top_p = 1, min_p = 0;
  std::int32_t top_k = 0;
  std::optional<int> steps, stability;
  std::optional<float> entropy_bound, t_min, t_max, confidence;
  bool show_denoising = false;
};

std::string read_prompt(const Options& options) {
  if (!options.prompt.empty()) return options.prompt;
  if (!options.prompt_file.empty()) {
    std::ifstream in(options.prompt_file, std::ios::binary);
    if (!in) bad_input("{}: the prompt file cannot be opened", options.prompt_file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  if (isatty(STDIN_FILENO) != 0) bad_input("no prompt: give one with -p or -f, or on standard input");
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

SessionSettings settings_of(const Options& options, const Engine& engine, std::int64_t prompt_tokens) {
  SessionSettings s;
  s.mode = options.mode == "ar" ? Mode::autoregressive : Mode::diffusion;
  s.denoise = engine.defaults().denoise;
  if (options.steps) s.denoise.max_denoising_steps = *options.steps;
  if (options.stability) s.denoise.stability_threshold = *options.stability;
  if (options.entropy_bound) s.denoise.entropy_bound = *options.entropy_bound;
  if (options.t_min) s.denoise.t_min = *options.t_min;
  if (options.t_max) s.denoise.t_max = *options.t_max;
  if (options.confidence) s.denoise.confidence_threshold = *options.confidence;
  s.max_tokens = options.max_tokens > 0 ? options.max_tokens : engine.defaults().max_new_tokens;
  s.context =
      options.context > 0 ? options.context : std::min(prompt_tokens + s.max_tokens, engine.config().max_positions);
  s.seed = options.seed;
  s.stop_ids = engine.defaults().stop_ids;
  if (s.mode == Mode::autoregressive) {
    s.sampling = {std::max(options.temperature, 0.0f), options.top_k, options.top_p, options.min_p};
  } else if (options.temperature == 0) {
    s.noise_free = true;
  } else if (options.temperature > 0) {  // scales the schedule
    s.denoise.t_min *= options.temperature;
    s.denoise.t_max *= options.temperature;
  }
  return s;
}

// The canvas as text; on a terminal red is unsure and green is sure.
void show_canvas(const Canvas& canvas, const Tokenizer& tokenizer, bool colour) {
  fmt::print(stderr, "step {:2} ", canvas.steps_done());
  for (std::size_t i = 0; i < canvas.best().size(); ++i) {
    std::string text = tokenizer.decode(canvas.best().subspan(i, 1), false);
    for (char& character : text) character = character == '\n' ? ' ' : character;
    if (colour) {
      const int shade = static_cast<int>(canvas.predictions()[i].confidence * 5);
      fmt::print(stderr, "\x1b[38;5;{}m{}\x1b[0m", 16 + 36 * (5 - shade) + 6 * shade, text);
    } else {
      fmt::print(stderr, "{}", text);
    }
  }
  fmt::print(stderr, "\n");
}

int run(const Options& options) {
  const Engine engine = Engine::open(options.model);
  const Tokenizer& tokenizer = engine.tokenizer();
  std::vector<std::int32_t> prompt = tokenizer.encode(read_prompt(options), SpecialTokens::parse);
  // A raw prompt needs exactly one <bos> (spec chat.md 1.5).
  const std::int32_t bos = tokenizer.id_of("<bos>");
  if (bos >= 0 && (prompt.empty() || prompt[0] != bos)) prompt.insert(prompt.begin(), bos);
  const auto prompt_tokens = static_cast<std::int64_t>(prompt.size());

  Context c(options.threads > 0 ? options.threads
                                : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  Session session(engine, settings_of(options, engine, prompt_tokens), std::move(prompt));
  std::signal(SIGINT, [](int) { interrupted = true; });

  const auto start = std::chrono::steady_clock::now();
  auto prompt_done = start;
  std::string printed;
  Progress progress = Progress::prompt_encoded;
  while (progress != Progress::finished && !interrupted) {
    progress = session.advance(c);
    if (progress == Progress::prompt_encoded) prompt_done = std::chrono::steady_clock::now();
    if (progress == Progress::canvas_refined) {
      if (options.show_denoising) show_canvas(*session.canvas(), tokenizer, isatty(STDERR_FILENO) != 0);
      continue;
    }
    // Decoding all committed ids again keeps characters whole that lie across two canvases; an unfinished tail waits.
    std::string text = tokenizer.decode(session.tokens(), true);
    if (progress != Progress::finished) {
      while (text.ends_with("\xEF\xBF\xBD")) text.resize(text.size() - 3);
    }
    if (text.size() > printed.size()) std::cout << std::string_view(text).substr(printed.size()) << std::flush;
    printed = text;
  }
  std::cout << std::endl;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - prompt_done).count();
  const auto tokens = static_cast<double>(session.tokens().size());
  const Metrics m = session.metrics();
  if (options.metrics == "json") {
    const nlohmann::json line{{"prompt_tokens", prompt_tokens},
                              {"total_tokens", session.tokens().size()},
                              {"denoising_steps", m.denoising_steps},
                              {"effective_denoising_steps", m.effective_denoising_steps},
                              {"tokens_per_forward", m.tokens_per_forward},
                              {"prompt_seconds", std::chrono::duration<double>(prompt_done - start).count()},
                              {"generation_seconds", seconds},
                              {"tokens_per_second", tokens / seconds}};
    fmt::print(stderr, "{}\n", line.dump());
  } else if (session.metrics().denoising_steps > 0) {
    fmt::print(stderr, "{} tokens, {} denoising steps ({:.2f} effective), {:.2f} tokens per forward, {:.1f} tokens/s\n",
               tokens, m.denoising_steps, m.effective_denoising_steps, m.tokens_per_forward, tokens / seconds);
  } else {
    fmt::print(stderr, "{} tokens, {:.1f} tokens/s\n", tokens, tokens / seconds);
  }
  return interrupted ? 130 : 0;
}

}  // namespace

void add_generate(CLI::App& app, int& result) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt");
  command->add_option("-m,--model", o->model, "directory with config.json, safetensors and tokenizer.json")->required();
  auto* prompt = command->add_option("-p,--prompt", o->prompt, "the prompt; control tokens in it count");
  command->add_option("-f,--file", o->prompt_file, "read the prompt from a file (default: standard input)")
      ->excludes(prompt);
  command->add_option("-n,--max-tokens", o->max_tokens, "most tokens to generate")->check(CLI::PositiveNumber);
  command->add_option("-c,--context", o->context, "most positions of prompt and answer")->check(CLI::PositiveNumber);
  command->add_option("-t,--threads", o->threads, "threads (default: all cores)")->check(CLI::Range(1, 1024));
  command->add_option("--seed", o->seed, "the same seed gives the same text on any number of threads");
  command->add_option("--mode", o->mode, "diffusion or ar (autoregressive)")->check(CLI::IsMember({"diffusion", "ar"}));
  command->add_option("--temperature", o->temperature,
                      "diffusion: scales the schedule, 0 takes no samples; ar: 0 is greedy");
  command->add_option("--top-k", o->top_k, "ar: keep the k most likely tokens; 0 keeps all");
  command->add_option("--top-p", o->top_p, "ar: keep the likeliest tokens that reach this probability");
  command->add_option("--min-p", o->min_p, "ar: keep tokens of at least this share of the likeliest");
  command->add_option("--steps", o->steps, "most denoising steps a canvas");
  command->add_option("--entropy-bound", o->entropy_bound, "entropy, in nats, that one step may accept");
  command->add_option("--t-min", o->t_min, "temperature behind the last step");
  command->add_option("--t-max", o->t_max, "temperature of the first step");
  command->add_option("--stability", o->stability, "equal canvases in a row that allow stopping");
  command->add_option("--confidence", o->confidence, "mean entropy, in nats, that allows stopping");
  command->add_flag("--show-denoising", o->show_denoising, "show the canvas after every step on standard error");
  command->add_option("--metrics", o->metrics, "json: the last line on standard error is JSON")
      ->check(CLI::IsMember({"json"}));
  command->footer(
      "Example:\n  dgemma generate -m model-directory -p 'Why is the sky blue?' -n 256 --seed 1 --show-denoising");
  command->callback([o, &result] { result = run(*o); });
}

}  // namespace dgemma
