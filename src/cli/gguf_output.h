// What convert and quantize share: the options of the file they write, progress and a summary on standard error.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/write_weights.h"

namespace dgemma {

struct OutputOptions {
  std::string path, type;
  int threads = 0;  // 0: all cores
  bool force = false, requantize = false;
};

// `type` is required when there is no `default_type` text to show.
void add_output_options(CLI::App& command, OutputOptions& options, const char* default_type);

// With progress on standard error, which ends with the object's life. Ctrl-C raises Interrupted from within the
// writing; no file appears then.
GgufOutput gguf_output(const OutputOptions& options);

struct Interrupted {};

// Size, tensors by type and time.
void show_written(const OutputOptions& options, const WrittenTypes& written, double seconds);

}  // namespace dgemma
