#include "cli/sampling_options.h"

#include <algorithm>
#include <thread>

namespace dgemma {

void add_sampling_options(CLI::App& command, SamplingOptions& o) {
  command.add_option("-m,--model", o.model, "directory with config.json, safetensors and tokenizer.json")->required();
  command.add_option("-n,--max-tokens", o.max_tokens, "most tokens to generate")->check(CLI::PositiveNumber);
  command.add_option("-c,--context", o.context, "most positions of prompt and answer")->check(CLI::PositiveNumber);
  command.add_option("-t,--threads", o.threads, "threads (default: all cores)")->check(CLI::Range(1, 1024));
  command.add_option("--seed", o.seed, "the same seed gives the same text on any number of threads");
  command.add_option("--mode", o.mode, "diffusion or ar (autoregressive)")->check(CLI::IsMember({"diffusion", "ar"}));
  command
      .add_option("--temperature", o.temperature,
                  "diffusion: scales the schedule, 0 takes no samples; ar: 0 (default) is greedy")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--sampler", o.sampler, "diffusion: how a step makes the next canvas")
      ->check(CLI::IsMember({"entropy-bound", "euler"}));
  command
      .add_option("--canvas", o.canvas, "diffusion: tokens of a canvas, at most the checkpoint's number (the default)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--steps", o.steps, "diffusion: most denoising steps a canvas");
  command.add_option("--entropy-bound", o.entropy_bound, "diffusion: entropy, in nats, that one step may accept");
  command.add_option("--t-min", o.t_min, "diffusion: temperature behind the last step");
  command.add_option("--t-max", o.t_max, "diffusion: temperature of the first step");
  command.add_option("--stability", o.stability, "diffusion: equal canvases in a row that allow stopping");
  command.add_option("--confidence", o.confidence, "diffusion: mean entropy, in nats, that allows stopping");
  command.add_option("--top-k", o.filter.top_k, "keep the k most likely tokens; 0 keeps all");
  command.add_option("--top-p", o.filter.top_p, "keep the likeliest tokens that reach this probability");
  add_precision_option(command, o.precision);
  command.add_flag("--full-soft-embedding", o.full_soft_embedding,
                   "diffusion: self-conditioning adds every token, however improbable");
  command.add_option("--min-p", o.filter.min_p, "keep tokens of at least this share of the likeliest");
}

void add_precision_option(CLI::App& command, Precision& precision) {
  command
      .add_option_function<std::string>(
          "--precision", [&precision](const std::string& name) { precision = kPrecisions.at(name); },
          "what products round to: int8 (default: activations, where they meet quantised weights), bf16 (both sides), "
          "or f32, exact and slower")
      ->check(CLI::IsMember(kPrecisions))
      ->option_text("f32|bf16|int8");
}

SessionSettings session_settings(const SamplingOptions& o, const Engine& engine, std::int64_t prompt_tokens) {
  SessionSettings s;
  s.mode = o.mode == "ar" ? Mode::autoregressive : Mode::diffusion;
  s.sampler = o.sampler == "euler" ? Sampler::discrete_euler : Sampler::entropy_bound;
  s.denoise = engine.defaults().denoise;
  if (o.steps) s.denoise.max_denoising_steps = *o.steps;
  if (o.stability) s.denoise.stability_threshold = *o.stability;
  if (o.entropy_bound) s.denoise.entropy_bound = *o.entropy_bound;
  if (o.t_min) s.denoise.t_min = *o.t_min;
  if (o.t_max) s.denoise.t_max = *o.t_max;
  if (o.confidence) s.denoise.confidence_threshold = *o.confidence;
  s.max_tokens = o.max_tokens > 0 ? o.max_tokens : engine.defaults().max_new_tokens;
  s.context = o.context > 0 ? o.context : std::min(prompt_tokens + s.max_tokens, engine.config().max_positions);
  s.canvas = o.canvas;
  s.seed = o.seed;
  s.stop_ids = engine.defaults().stop_ids;
  s.filter = o.filter;
  if (s.mode == Mode::autoregressive) {
    s.ar_temperature = o.temperature.value_or(0.0f);
  } else if (o.temperature && *o.temperature == 0) {
    s.noise_free = true;
  } else if (o.temperature) {
    s.denoise.t_min *= *o.temperature;
    s.denoise.t_max *= *o.temperature;
  }
  return s;
}

Context make_context(const SamplingOptions& o) {
  const int threads = o.threads > 0 ? o.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return Context(threads, o.precision, o.full_soft_embedding);
}

}  // namespace dgemma
