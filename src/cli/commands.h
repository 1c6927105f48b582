// The subcommands: each adds itself to the parser, runs inside its callback and leaves its exit code in `result`.
#pragma once

#include <CLI/CLI.hpp>

namespace dgemma {

void add_generate(CLI::App& app, int& result);
void add_inspect(CLI::App& app, int& result);
void add_chat(CLI::App& app, int& result);
void add_demo(CLI::App& app, int& result);
void add_perplexity(CLI::App& app, int& result);
void add_convert(CLI::App& app, int& result);
void add_quantize(CLI::App& app, int& result);

// Ctrl-C: after catch_interrupt(), which forgets earlier ones, the first one only makes interrupted() true.
void catch_interrupt();
bool interrupted();

}  // namespace dgemma
