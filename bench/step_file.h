// A checkpoint file as bench_step's model, opened as every command opens it, and what that costs: the time until the
// first pass can begin, and memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.h"
#include "ops/context.h"

namespace dgemma::bench {

class StepFile {
 public:
  // Reads the file once, so that the page cache holds it, then measures. bad_input for an autoregressive checkpoint.
  // `context`: positions of the one sequence whose memory is measured, its canvas included.
  StepFile(const std::string& path, std::int64_t context, int threads, Precision precision);

  const Engine& engine() const { return engine_; }
  std::int64_t size_bytes() const { return size_bytes_; }

  // Prints a few lines, returns them as JSON. Memory is that of the process after prompt and two denoising steps:
  // own_peak_bytes is the peak less the file's mapped pages, which the system can drop.
  nlohmann::json report() const;

 private:
  struct Memory {
    std::int64_t peak = 0, mapped = 0, anonymous = 0;  // VmHWM, RssFile, RssAnon
  };

  static Memory memory();
  Engine open(const std::string& path);
  void generate(const std::string& path, std::int64_t context, int threads, Precision precision);

  double cached_ = 0;  // fraction of the file in the page cache before it is opened
  double open_s_ = 0, first_pass_begins_s_ = 0, first_chunk_s_ = 0, prompt_s_ = 0, first_step_s_ = 0,
         second_step_s_ = 0;
  std::int64_t size_bytes_ = 0, prompt_ = 0, context_ = 0;
  Memory memory_;
  Engine engine_;  // after the figures that opening it writes
};

}  // namespace dgemma::bench
