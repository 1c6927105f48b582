// dgemma: one subcommand a file; errors become one line on standard error and an exit code (docs/architecture.md).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/commands.h"

namespace {

int exit_code(dgemma::ErrorKind kind) {
  switch (kind) {
    case dgemma::ErrorKind::bad_input:
      return 2;
    case dgemma::ErrorKind::unsupported:
      return 3;
    case dgemma::ErrorKind::resource:
      return 4;
    case dgemma::ErrorKind::internal:
      return 70;
  }
  return 70;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("DiffusionGemma on the CPU");
  app.footer(
      "Examples:\n"
      "  dgemma inspect -m model-directory\n"
      "  dgemma generate -m model-directory -p 'Why is the sky blue?' -n 256 --seed 1\n"
      "  cat prompt.txt | dgemma generate -m model-directory --mode ar --temperature 0.7 > answer.txt");
  app.require_subcommand(1);
  int result = 0;
  dgemma::add_generate(app, result);
  dgemma::add_chat(app, result);
  dgemma::add_demo(app, result);
  dgemma::add_inspect(app, result);
  dgemma::add_perplexity(app, result);
  dgemma::add_convert(app, result);
  dgemma::add_quantize(app, result);
  try {
    app.parse(argc, argv);
    return result;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const dgemma::Error& error) {
    std::fprintf(stderr, "dgemma: %s\n", error.what());
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "dgemma: out of memory\n");
    return 4;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dgemma: internal error: %s\n", error.what());
    return 70;
  }
}
