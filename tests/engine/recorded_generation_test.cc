// Whole generations against Transformers' generate(), token by token and step by step. The reference ran with the
// random numbers of base/random.h (tools/reference/recorded_generation.py), so that a session with the same seed must
// do the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/session.h"
#include "format/safetensors.h"
#include "golden_file.h"

namespace dgemma {
namespace {

struct Recorded {
  std::string folder;
  std::string prefix;  // of one row of a batch
  std::size_t row;
};

class RecordedGeneration : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedGeneration, EveryStepIsTheReferences) {
  const auto& [folder, prefix, row] = GetParam();
  const SafetensorsFile file = SafetensorsFile::open(kGolden + folder + "/tensors.safetensors");
  std::ifstream in(kGolden + folder + "/case.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const Engine engine = Engine::open(kGolden + "tiny");

  const nlohmann::json& given = golden["settings"];
  SessionSettings settings;
  settings.denoise = {given["max_denoising_steps"],
                      given["t_min"],
                      given["t_max"],
                      given["sampler_config"],
                      given["stability_threshold"],
                      given["confidence_threshold"]};
  settings.max_tokens = given["max_new_tokens"];
  settings.canvas = given.value("canvas_length", 0);
  const std::size_t length = given.value("canvas_length", 16);
  settings.seed = golden["seed"][row];
  settings.stop_ids = given["eos_token_id"].get<std::vector<std::int32_t>>();

  const auto canvas = golden_values<std::int32_t>(file, prefix + "canvas"),
             best = golden_values<std::int32_t>(file, prefix + "best");
  const auto next = golden_values<std::int32_t>(file, prefix + "next_canvas");
  const auto accepted = golden_values<std::int32_t>(file, prefix + "accepted");
  const auto done = golden_values<std::int32_t>(file, prefix + "done"),
             frozen = golden_values<std::int32_t>(file, prefix + "frozen");
  const auto entropies = golden_values<float>(file, prefix + "entropies");

  Context c(2);
  Session session(engine, settings, golden_values<std::int32_t>(file, prefix + "prompt_ids"));
  std::size_t step = 0, compared = 0;
  std::vector<std::int32_t> working;
  for (Progress progress = session.advance(c); progress != Progress::finished; progress = session.advance(c)) {
    if (progress == Progress::canvas_committed) working.clear();
    if (progress != Progress::canvas_refined) continue;
    // A batch goes on while another row denoises; this row's frozen steps repeat its last one.
    while (step < frozen.size() && frozen[step] != 0) ++step;
    ASSERT_LT(step, done.size());
    ASSERT_EQ(session.canvas()->ids().size(), length);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = length * step + i;
      if (!working.empty()) {
        ASSERT_EQ(working[i], canvas[at]) << "step " << step << " input, position " << i;
      }
      ASSERT_NEAR(session.canvas()->predictions()[i].entropy, entropies[at], 1e-3)
          << "step " << step << " position " << i;
      ASSERT_EQ(session.canvas()->accepted()[i], accepted[at]) << "step " << step << " position " << i;
      ASSERT_EQ(session.canvas()->ids()[i], next[at]) << "step " << step << " position " << i;
      ASSERT_EQ(session.canvas()->best()[i], best[at]) << "step " << step << " position " << i;
    }
    ASSERT_EQ(session.canvas()->done(), done[step] != 0 || session.canvas()->steps_left() == 0) << "step " << step;
    working.assign(session.canvas()->ids().begin(), session.canvas()->ids().end());
    ++step;
    ++compared;
  }
  EXPECT_GE(compared, 8u);

  // The reference pads behind the first stop id; the session ends with it.
  std::vector<std::int32_t> expected = golden_values<std::int32_t>(file, prefix + "new_ids");
  const std::size_t stop = first_stop(expected, settings.stop_ids);
  if (stop < expected.size()) expected.resize(stop + 1);
  EXPECT_EQ(expected, std::vector<std::int32_t>(session.tokens().begin(), session.tokens().end()));
}

INSTANTIATE_TEST_SUITE_P(Cases, RecordedGeneration,
                         testing::Values(Recorded{"generate", "", 0}, Recorded{"generate_stop", "", 0},
                                         Recorded{"generate_eos", "", 0}, Recorded{"generate_canvas", "", 0},
                                         Recorded{"generate_batch", "row0.", 0},
                                         Recorded{"generate_batch", "row1.", 1}));

}  // namespace
}  // namespace dgemma
