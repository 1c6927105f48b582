// Settings of one canvas's denoising, and its temperature schedule (spec architecture.md 3.1, 3.3; report section 5).
#pragma once

#include <cstdint>

namespace dgemma {

struct DenoiseSettings {
  int max_denoising_steps = 48;
  float t_min = 0.4f;
  float t_max = 0.8f;
  float entropy_bound = 0.1f;           // nats
  int stability_threshold = 1;          // argmax canvases in a row that must be equal to the newest
  float confidence_threshold = 0.005f;  // nats; stop below this mean entropy

  // Throws bad_input that names the setting, its range and what was given.
  void validate() const;
};

// Temperature with n steps left, this one included: t_min + (t_max - t_min) * n / max_denoising_steps, in f32 as the
// reference.
float temperature(const DenoiseSettings& settings, int steps_left);

}  // namespace dgemma
