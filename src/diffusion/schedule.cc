#include "diffusion/schedule.h"

#include "base/error.h"

namespace dgemma {

void DenoiseSettings::validate() const {
  if (max_denoising_steps < 1 || max_denoising_steps > 100000) {
    bad_input("max_denoising_steps must be 1 .. 100000, found {}", max_denoising_steps);
  }
  if (!(t_min >= 0 && t_max > t_min && t_max <= 100)) {
    bad_input("temperatures must satisfy 0 <= t_min < t_max <= 100, found t_min {} and t_max {}", t_min, t_max);
  }
  if (!(entropy_bound > 0)) bad_input("entropy_bound must be above 0, found {}", entropy_bound);
  if (stability_threshold < 0 || stability_threshold > 1000) {
    bad_input("stability_threshold must be 0 .. 1000, found {}", stability_threshold);
  }
  if (!(confidence_threshold > 0)) bad_input("confidence_threshold must be above 0, found {}", confidence_threshold);
}

float temperature(const DenoiseSettings& settings, int steps_left) {
  const float fraction = static_cast<float>(steps_left) / static_cast<float>(settings.max_denoising_steps);
  return settings.t_min + (settings.t_max - settings.t_min) * fraction;
}

}  // namespace dgemma
