#include "cli/show.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace dgemma {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const std::string& text) {
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
    written_ = true;
  } else if (watch_.seconds() >= next_) {
    fmt::print(stderr, "{}\n", text);
    next_ = watch_.seconds() + 5;
  }
}

void ProgressLine::erase() {
  if (written_) fmt::print(stderr, "\r\x1b[K");
  written_ = false;
}

Engine open_model(const std::string& path) {
  ProgressLine line;
  line.show("loading " + path);
  return Engine::open(path);
}

void show_canvas(const Canvas& canvas, const Tokenizer& tokenizer) {
  const bool colour = isatty(STDERR_FILENO) != 0;
  std::string line = fmt::format("step {:2}  ", canvas.steps_done());
  for (std::size_t i = 0; i < canvas.best().size(); ++i) {
    std::string text = tokenizer.decode(canvas.best().subspan(i, 1), false);
    for (char& character : text) {
      if (static_cast<unsigned char>(character) < ' ') character = ' ';  // a canvas is one line, and no escape codes
    }
    if (colour) {
      const int sure =
          static_cast<int>(canvas.predictions()[i].confidence * 5);  // 0 red .. 5 green of the 6 x 6 x 6 cube
      line += fmt::format("\x1b[38;5;{}m{}\x1b[0m", 16 + 36 * (5 - sure) + 6 * sure, text);
    } else {
      line += text;
    }
  }
  fmt::print(stderr, "{}\n", line);
}

void show_metrics(const Metrics& m, const Work& w, const Timing& t, bool json) {
  const double rate = t.generation_seconds > 0 ? static_cast<double>(t.tokens) / t.generation_seconds : 0;
  if (json) {
    const nlohmann::json line{{"prompt_tokens", t.prompt_tokens},
                              {"total_tokens", t.tokens},
                              {"denoising_steps", m.denoising_steps},
                              {"effective_denoising_steps", m.effective_denoising_steps},
                              {"tokens_per_forward", m.tokens_per_forward},
                              {"prompt_seconds", t.prompt_seconds},
                              {"generation_seconds", t.generation_seconds},
                              {"tokens_per_second", rate},
                              {"encoder_passes", w.encoder_passes},
                              {"encoder_rows", w.encoder_rows},
                              {"decoder_passes", w.decoder_passes},
                              {"decoder_rows", w.decoder_rows},
                              {"unread_rows", w.unread_rows},
                              {"last_step_rows", w.last_step_rows}};
    fmt::print(stderr, "{}\n", line.dump());
    return;
  }
  const bool diffusion = m.denoising_steps > 0;
  if (diffusion) {
    fmt::print(stderr, "{} tokens, {} denoising steps ({:.2f} effective), {:.2f} tokens per forward, {:.1f} tokens/s\n",
               t.tokens, m.denoising_steps, m.effective_denoising_steps, m.tokens_per_forward, rate);
  } else {
    fmt::print(stderr, "{} tokens, {:.1f} tokens/s\n", t.tokens, rate);
  }
  fmt::print(stderr, "passes: encoder {} ({} rows, {} without last layer and logits)", w.encoder_passes, w.encoder_rows,
             w.unread_rows);
  if (diffusion) {
    fmt::print(stderr, ", decoder {} ({} rows, {} without soft embedding)", w.decoder_passes, w.decoder_rows,
               w.last_step_rows);
  }
  fmt::print(stderr, "\n");
}

}  // namespace dgemma
