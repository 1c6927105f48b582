// dgemma demo: the shipped Sudoku model on puzzles that it was not trained on; one of them shown step by step, or all
// as a measure.
#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/sampling_options.h"
#include "cli/show.h"

namespace dgemma {
namespace {

struct Options {
  SamplingOptions sampling;
  std::string data;
  std::int64_t puzzle = -1;
  bool all = false;
};

// A grid a string, row by row; 0 is an empty cell.
struct Puzzle {
  std::string question, solution;
};

std::vector<Puzzle> read_puzzles(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) bad_input("{}: the puzzles cannot be read", path);
  if (line != "quizzes,solutions")
    bad_input("{}: expected the first line \"quizzes,solutions\", found \"{}\"", path, line);
  std::vector<Puzzle> out;
  for (int number = 2; std::getline(in, line); ++number) {
    const std::size_t comma = line.find(',');
    if (comma == std::string::npos) bad_input("{}:{}: expected a puzzle, a comma and its solution", path, number);
    out.push_back({line.substr(0, comma), line.substr(comma + 1)});
    const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(comma))));
    if (comma == 0 || side * side != comma || out.back().solution.size() != comma) {
      bad_input("{}:{}: puzzle and solution must be square grids of one size", path, number);
    }
  }
  if (out.empty()) bad_input("{}: there is no puzzle", path);
  return out;
}

// The grid's rows, each ended by a newline, '.' for an empty cell: the form that the model was trained on.
std::string rows_of(const std::string& grid) {
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(grid.size()))));
  std::string out;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    out += grid[i] == '0' ? '.' : grid[i];
    if ((i + 1) % side == 0) out += '\n';
  }
  return out;
}

struct Solved {
  std::string answer;
  Metrics metrics;
  Work work;
  Timing timing;
};

Solved solve(Context& c, const Engine& engine, const SamplingOptions& sampling, const Puzzle& puzzle, bool show) {
  const Tokenizer& tokenizer = engine.tokenizer();
  std::vector<std::int32_t> prompt = tokenizer.encode("<bos>" + rows_of(puzzle.question), SpecialTokens::parse);
  Solved out;
  out.timing.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  Session session(engine, session_settings(sampling, engine, out.timing.prompt_tokens), std::move(prompt));
  const Stopwatch watch;
  for (Progress progress = Progress::prompt_encoded; progress != Progress::finished && !interrupted();) {
    progress = session.advance(c);
    if (progress == Progress::prompt_encoded) out.timing.prompt_seconds = watch.seconds();
    if (show && progress == Progress::canvas_refined) show_canvas(*session.canvas(), tokenizer);
  }
  out.timing.generation_seconds = watch.seconds() - out.timing.prompt_seconds;
  out.timing.tokens = static_cast<std::int64_t>(session.tokens().size());
  out.answer = tokenizer.decode(session.tokens(), true);
  out.metrics = session.metrics();
  out.work = session.work();
  return out;
}

bool right(const Puzzle& puzzle, const std::string& answer) {
  std::string expected = rows_of(puzzle.solution);
  expected.pop_back();  // the answer ends with <eos>, not with a newline
  return answer == expected;
}

void solve_one(Context& c, const Engine& engine, const Options& options, const std::vector<Puzzle>& puzzles) {
  const auto count = static_cast<std::uint32_t>(puzzles.size());
  const std::int64_t index = options.puzzle >= 0 ? options.puzzle : random_below(options.sampling.seed, 0, 0, count);
  if (index >= count) bad_input("--puzzle {}: there are puzzles 0 .. {}", index, count - 1);
  const Puzzle& puzzle = puzzles[static_cast<std::size_t>(index)];
  fmt::print(stderr, "held-out puzzle {}:\n{}\n", index, rows_of(puzzle.question));
  const Solved solved =
      solve(c, engine, options.sampling, puzzle, isatty(STDOUT_FILENO) != 0 || isatty(STDERR_FILENO) != 0);
  fmt::print("{}\n", solved.answer);
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", right(puzzle, solved.answer) ? "right" : "wrong");
  show_metrics(solved.metrics, solved.work, solved.timing, false);
}

void solve_all(Context& c, const Engine& engine, const Options& options, const std::vector<Puzzle>& puzzles) {
  std::int64_t exact = 0, cells = 0, cells_right = 0, done = 0;
  double steps = 0;
  SamplingOptions sampling = options.sampling;  // a seed a puzzle: one noise for all would make one chance of 512
  for (const Puzzle& puzzle : puzzles) {
    if (interrupted()) break;
    const Solved solved = solve(c, engine, sampling, puzzle, false);
    ++sampling.seed;
    exact += right(puzzle, solved.answer) ? 1 : 0;
    const std::string expected = rows_of(puzzle.solution);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == '\n') continue;
      ++cells;
      cells_right += i < solved.answer.size() && solved.answer[i] == expected[i] ? 1 : 0;
    }
    steps += solved.metrics.effective_denoising_steps;
    ++done;
    if (done % 64 == 0) fmt::print(stderr, "{} of {} puzzles, {} exact\n", done, puzzles.size(), exact);
  }
  if (done == 0) return;
  const auto n = static_cast<double>(done);
  fmt::print("{} puzzles: exact {:.4f}, cells {:.4f}, effective denoising steps {:.2f}\n", done,
             static_cast<double>(exact) / n, static_cast<double>(cells_right) / static_cast<double>(cells), steps / n);
}

}  // namespace

void add_demo(CLI::App& app, int& result) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("demo", "Solve held-out Sudoku puzzles with the shipped model");
  add_sampling_options(*command, o->sampling);
  command->add_option("--data", o->data, "CSV of quizzes,solutions (default: held_out.csv beside the model)");
  command->add_option("--puzzle", o->puzzle, "which puzzle (default: one that the seed picks)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--all", o->all, "solve all and print accuracy and steps");
  command->footer("Examples:\n  dgemma demo -m models/sudoku-6x6\n  dgemma demo -m models/sudoku-6x6 --all");
  command->callback([o, &result] {
    catch_interrupt();
    const Engine engine = open_model(o->sampling.model);
    const std::vector<Puzzle> puzzles = read_puzzles(o->data.empty() ? o->sampling.model + "/held_out.csv" : o->data);
    Context c = make_context(o->sampling);
    (o->all ? solve_all : solve_one)(c, engine, *o, puzzles);
    result = interrupted() ? 130 : 0;
  });
}

}  // namespace dgemma
