// dgemma chat: plain turns with a model that knows the Gemma turn tokens.
#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/sampling_options.h"
#include "cli/show.h"
#include "text/stream_decoder.h"

namespace dgemma {
namespace {

struct Options {
  SamplingOptions sampling;
  bool show_denoising = false;
};

// How a turn is written. Gemma 4 opens a model turn with an empty thought when thinking is off (spec chat.md section
// 2).
struct TurnStyle {
  const char* open;
  const char* close;
  const char* answer_prefix;
};

TurnStyle turn_style(const Tokenizer& tokenizer) {
  if (tokenizer.id_of("<|turn>") >= 0 && tokenizer.id_of("<turn|>") >= 0) {
    return {"<|turn>", "<turn|>\n", tokenizer.id_of("<|channel>") >= 0 ? "<|channel>thought\n<channel|>" : ""};
  }
  if (tokenizer.id_of("<start_of_turn>") >= 0) return {"<start_of_turn>", "<end_of_turn>\n", ""};
  fail(ErrorKind::unsupported, "the model's tokenizer has no turn tokens: it is not a chat model; use dgemma generate");
}

struct Turn {
  std::string question, answer;
};

// The conversation as ids. What people and models wrote is untrusted: control tokens in it stay text.
std::vector<std::int32_t> render(const Tokenizer& tokenizer, const TurnStyle& style, const std::vector<Turn>& turns) {
  const std::string user = std::string(style.open) + "user\n", close = style.close;
  const std::string model = std::string(style.open) + "model\n", prefix = style.answer_prefix;
  std::vector<TextSegment> segments{{"<bos>", true}};
  for (std::size_t i = 0; i < turns.size(); ++i) {
    segments.insert(segments.end(), {{user, true}, {turns[i].question, false}, {close, true}, {model, true}});
    if (i + 1 < turns.size()) {
      segments.insert(segments.end(), {{turns[i].answer, false}, {close, true}});
    } else {
      segments.push_back({prefix, true});
    }
  }
  return tokenizer.encode(segments);
}

std::string answer(Context& c, const Engine& engine, const Options& options, std::vector<std::int32_t> prompt) {
  Timing timing;
  timing.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  Session session(engine, session_settings(options.sampling, engine, timing.prompt_tokens), std::move(prompt));
  StreamDecoder decoder(engine.tokenizer(), true);
  ProgressLine line;
  const Stopwatch watch;
  std::string text;
  std::size_t printed = 0;
  for (Progress progress = Progress::prompt_encoded; progress != Progress::finished && !interrupted();) {
    if (session.prompt_rows_encoded() < timing.prompt_tokens) {
      line.show(
          fmt::format("encoding the prompt: {} of {} tokens", session.prompt_rows_encoded(), timing.prompt_tokens));
    } else {
      line.erase();
    }
    progress = session.advance(c);
    if (progress == Progress::prompt_encoded) timing.prompt_seconds = watch.seconds();
    if (progress == Progress::canvas_refined && options.show_denoising)
      show_canvas(*session.canvas(), engine.tokenizer());
    const std::string more = decoder.push(session.tokens().subspan(printed));
    printed = session.tokens().size();
    std::cout << more << std::flush;
    text += more;
  }
  const std::string rest = decoder.finish();
  std::cout << rest << std::endl;
  timing.tokens = static_cast<std::int64_t>(session.tokens().size());
  timing.generation_seconds = watch.seconds() - timing.prompt_seconds;
  show_metrics(session.metrics(), session.work(), timing, false);
  return text + rest;
}

void run(const Options& options) {
  const Engine engine = open_model(options.sampling.model);
  const TurnStyle style = turn_style(engine.tokenizer());
  Context c = make_context(options.sampling);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) fmt::print(stderr, "One line a turn; an empty line or Ctrl-D ends. Ctrl-C stops an answer.\n");
  std::vector<Turn> turns;
  for (std::string line;;) {
    if (terminal) fmt::print(stderr, "> ");
    if (!std::getline(std::cin, line) || line.empty()) return;
    turns.push_back({line, ""});
    catch_interrupt();  // anew for each answer
    turns.back().answer = answer(c, engine, options, render(engine.tokenizer(), style, turns));
  }
}

}  // namespace

void add_chat(CLI::App& app, int&) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("chat", "Talk to a model, a line a turn");
  add_sampling_options(*command, o->sampling);
  command->add_flag("--show-denoising", o->show_denoising, "show the canvas after every step on standard error");
  command->footer("Example:\n  dgemma chat -m model-directory -n 512");
  command->callback([o] { run(*o); });
}

}  // namespace dgemma
