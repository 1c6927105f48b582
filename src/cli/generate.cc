// dgemma generate: a prompt in, the answer on standard output, everything else on standard error.
#include <fmt/core.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/sampling_options.h"
#include "cli/show.h"
#include "diffusion/trace.h"
#include "text/stream_decoder.h"

namespace dgemma {
namespace {

struct Options {
  SamplingOptions sampling;
  std::string prompt, prompt_file, metrics, trace;
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

void write_trace(const Trace& trace, const std::string& path, const Tokenizer& tokenizer) {
  const auto text = [&](std::int32_t id) { return tokenizer.text_of(id); };
  std::ofstream out(path, std::ios::binary);
  out << (path.ends_with(".html") ? trace.html("Denoising", text) : trace.json(text)) << std::flush;
  if (!out) fail(ErrorKind::resource, "{}: the trace cannot be written", path);
}

int run(const Options& options) {
  const Engine engine = open_model(options.sampling.model);
  const Tokenizer& tokenizer = engine.tokenizer();
  const std::string text = read_prompt(options);
  if (text.empty()) bad_input("the prompt is empty; to start from nothing, give -p '<bos>'");
  std::vector<std::int32_t> prompt = tokenizer.encode(text, SpecialTokens::parse);
  // A raw prompt needs exactly one <bos> (spec chat.md 1.5).
  if (tokenizer.bos() >= 0 && (prompt.empty() || prompt[0] != tokenizer.bos()))
    prompt.insert(prompt.begin(), tokenizer.bos());
  Timing timing;
  timing.prompt_tokens = static_cast<std::int64_t>(prompt.size());

  Context c = make_context(options.sampling);
  Session session(engine, session_settings(options.sampling, engine, timing.prompt_tokens), std::move(prompt));
  StreamDecoder decoder(tokenizer, true);
  Trace trace;
  catch_interrupt();

  ProgressLine line;
  const Stopwatch watch;
  std::size_t printed = 0;
  std::int64_t canvases = 0;
  Progress progress = Progress::prompt_encoded;
  while (progress != Progress::finished && !interrupted()) {
    if (session.prompt_rows_encoded() < timing.prompt_tokens) {
      line.show(
          fmt::format("encoding the prompt: {} of {} tokens", session.prompt_rows_encoded(), timing.prompt_tokens));
    } else {
      line.erase();
    }
    progress = session.advance(c);
    if (progress == Progress::prompt_encoded) timing.prompt_seconds = watch.seconds();
    if (progress == Progress::canvas_refined) {
      if (options.show_denoising) show_canvas(*session.canvas(), tokenizer);
      if (!options.trace.empty()) trace.record(canvases, *session.canvas());
    } else {
      canvases += progress == Progress::canvas_committed ? 1 : 0;
      std::cout << decoder.push(session.tokens().subspan(printed)) << std::flush;
      printed = session.tokens().size();
    }
  }
  std::cout << decoder.finish() << std::endl;
  timing.tokens = static_cast<std::int64_t>(session.tokens().size());
  timing.generation_seconds = watch.seconds() - timing.prompt_seconds;
  if (!options.trace.empty()) write_trace(trace, options.trace, tokenizer);
  show_metrics(session.metrics(), session.work(), timing, options.metrics == "json");
  return interrupted() ? 130 : 0;
}

}  // namespace

void add_generate(CLI::App& app, int& result) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt");
  auto* prompt = command->add_option("-p,--prompt", o->prompt, "the prompt; control tokens in it count");
  command->add_option("-f,--file", o->prompt_file, "read the prompt from a file (default: standard input)")
      ->excludes(prompt);
  add_sampling_options(*command, o->sampling);
  command->add_flag("--show-denoising", o->show_denoising, "show the canvas after every step on standard error");
  command->add_option("--trace", o->trace, "write every step to FILE.json, or to a page FILE.html")
      ->check([](const std::string& path) {
        return path.ends_with(".json") || path.ends_with(".html") ? "" : "must end in .json or .html";
      });
  command->add_option("--metrics", o->metrics, "json: the last line on standard error is JSON")
      ->check(CLI::IsMember({"json"}));
  command->footer(
      "Examples:\n"
      "  dgemma generate -m models/sudoku-6x6 -f puzzle.txt --seed 1 --show-denoising\n"
      "  dgemma generate -m model-directory -p 'Why is the sky blue?' -n 256 --trace steps.html");
  command->callback([o, &result] { result = run(*o); });
}

}  // namespace dgemma
