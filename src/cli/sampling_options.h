// The options that every generating subcommand shares, and how they become a session's settings.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/session.h"

namespace dgemma {

struct SamplingOptions {
  std::string model, mode = "diffusion", sampler = "entropy-bound";
  std::int64_t max_tokens = 0, context = 0;  // 0: the checkpoint's default; just enough
  std::int64_t canvas = 0;                   // 0: the checkpoint's
  int threads = 0;                           // 0: all cores
  std::uint64_t seed = 0;
  std::optional<float> temperature, entropy_bound, t_min, t_max, confidence;
  std::optional<int> steps, stability;
  TokenFilter filter;
  Precision precision = Precision::int8;
  bool full_soft_embedding = false;
};

void add_sampling_options(CLI::App& command, SamplingOptions& options);

// --precision alone, which add_sampling_options contains.
void add_precision_option(CLI::App& command, Precision& precision);

// Over the checkpoint's own defaults; `prompt_tokens` gives the context when none was asked for.
SessionSettings session_settings(const SamplingOptions& options, const Engine& engine, std::int64_t prompt_tokens);

// Threads, precision and the like.
Context make_context(const SamplingOptions& options);

}  // namespace dgemma
