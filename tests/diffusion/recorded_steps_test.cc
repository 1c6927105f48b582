// The reference's recorded steps (tests/golden/README.md) replayed through Canvas without a model: recorded predictions
// in, recorded accepted masks, canvases and ends demanded.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "diffusion/canvas.h"
#include "format/safetensors.h"
#include "golden_file.h"

namespace dgemma {
namespace {

class RecordedSteps : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(RecordedSteps, MasksCanvasesAndEndsAreTheReferences) {
  const auto& [folder, prefix] = GetParam();
  const SafetensorsFile file = SafetensorsFile::open(kGolden + folder + "/tensors.safetensors");
  std::ifstream in(kGolden + folder + "/case.json");
  const nlohmann::json given = nlohmann::json::parse(in)["settings"];
  const DenoiseSettings settings{given["max_denoising_steps"],
                                 given["t_min"],
                                 given["t_max"],
                                 given["sampler_config"],
                                 given["stability_threshold"],
                                 given["confidence_threshold"]};
  const auto ids = [&](const char* name) { return golden_values<std::int32_t>(file, prefix + name); };
  const auto canvas_index = ids("canvas_index"), remaining = ids("remaining"), canvas_ids = ids("canvas");
  const auto argmax = ids("argmax"), sampled = ids("sampled"), noise_ids = ids("noise_ids"), accepted = ids("accepted");
  const auto next = ids("next_canvas"), best = ids("best"), done = ids("done"), frozen = ids("frozen");
  const auto entropies = golden_values<float>(file, prefix + "entropies");

  constexpr std::size_t kRows = 16;
  const auto row = [](const std::vector<std::int32_t>& all, std::size_t step) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(kRows * step);
    return std::vector<std::int32_t>(first, first + kRows);
  };
  const auto step_rule = entropy_bound_step(settings.entropy_bound);
  std::optional<Canvas> canvas;
  std::size_t compared = 0;
  for (std::size_t step = 0; step < remaining.size(); ++step) {
    SCOPED_TRACE(step);
    if (frozen[step] != 0) continue;  // another row of the batch still denoises
    if (step == 0 || canvas_index[step] != canvas_index[step - 1]) canvas.emplace(settings, row(canvas_ids, step));
    ASSERT_EQ(std::vector<std::int32_t>(canvas->ids().begin(), canvas->ids().end()), row(canvas_ids, step));
    ASSERT_EQ(canvas->steps_left(), remaining[step]);
    std::vector<RowPrediction> predictions;
    for (std::size_t i = kRows * step; i < kRows * (step + 1); ++i) {
      predictions.push_back({argmax[i], sampled[i], entropies[i], 0});
    }
    const auto token = [&](std::int64_t i) { return noise_ids[kRows * step + static_cast<std::size_t>(i)]; };
    canvas->advance(predictions, *step_rule, {token, [](std::int64_t) { return 0.5; }});
    EXPECT_EQ(std::vector<std::int32_t>(canvas->accepted().begin(), canvas->accepted().end()), row(accepted, step));
    EXPECT_EQ(std::vector<std::int32_t>(canvas->ids().begin(), canvas->ids().end()), row(next, step));
    EXPECT_EQ(std::vector<std::int32_t>(canvas->best().begin(), canvas->best().end()), row(best, step));
    ASSERT_EQ(canvas->done(), done[step] != 0 || remaining[step] == 1);
    ++compared;
  }
  EXPECT_GE(compared, 8u);
}

INSTANTIATE_TEST_SUITE_P(Cases, RecordedSteps,
                         testing::Values(std::pair{"generate", ""}, std::pair{"generate_stop", ""},
                                         std::pair{"generate_eos", ""}, std::pair{"generate_batch", "row0."},
                                         std::pair{"generate_batch", "row1."}));

// The reference's rule ran over 40 made-up steps. A canvas that starts at step `start` has a shorter history, so it
// ends at the first recorded stop that is at least `stability` steps later.
TEST(RecordedStopping, EndsWhereTheReferenceStops) {
  const SafetensorsFile file = SafetensorsFile::open(kGolden + "stopping/tensors.safetensors");
  const auto entropies = golden_values<float>(file, "entropies");
  const auto argmax = golden_values<std::int32_t>(file, "argmax");
  constexpr std::size_t kRows = 4, kSteps = 40;
  ASSERT_EQ(argmax.size(), kRows * kSteps);
  for (const int stability : {0, 1, 2, 3}) {
    for (const char* threshold : {"0.06", "0.12", "0.3"}) {
      const auto stop = golden_values<std::int32_t>(file, "stop." + std::to_string(stability) + "." + threshold);
      DenoiseSettings settings;
      settings.max_denoising_steps = 1000;
      settings.stability_threshold = stability;
      settings.confidence_threshold = std::stof(threshold);
      const auto step_rule = entropy_bound_step(0.1f);
      for (std::size_t start = 0; start < kSteps; ++start) {
        std::size_t expected = start + static_cast<std::size_t>(stability);
        while (expected < kSteps && stop[expected] == 0) ++expected;
        Canvas canvas(settings, std::vector<std::int32_t>(kRows, 0));
        std::size_t step = start;
        for (; step < kSteps; ++step) {
          std::vector<RowPrediction> predictions;
          for (std::size_t i = kRows * step; i < kRows * (step + 1); ++i) {
            predictions.push_back({argmax[i], 0, entropies[i], 0});
          }
          canvas.advance(predictions, *step_rule, {[](std::int64_t) { return 0; }, [](std::int64_t) { return 0.5; }});
          if (canvas.done()) break;
        }
        EXPECT_EQ(step, std::min(expected, kSteps))
            << "S " << stability << " threshold " << threshold << " start " << start;
      }
    }
  }
}

}  // namespace
}  // namespace dgemma
