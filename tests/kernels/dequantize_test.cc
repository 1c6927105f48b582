// Block formats against the values that the Python package `gguf` gives (tests/kernels/golden/case.json).
#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dgemma {
namespace {

const std::string kFolder = std::string(DGEMMA_SOURCE_DIR) + "/tests/kernels/golden/";

std::vector<char> read(const std::string& name) {
  std::ifstream in(kFolder + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Dequantize, EveryFormatEqualsTheGgufPackage) {
  std::ifstream in(kFolder + "case.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  ASSERT_GE(golden["formats"].size(), 15u);
  for (const auto& format : golden["formats"]) {
    const std::string name = format["name"];
    const std::vector<char> blocks = read(name + ".blocks.bin"), raw = read(name + ".values.bin");
    std::vector<float> expected(raw.size() / sizeof(float)), found(expected.size());
    std::memcpy(expected.data(), raw.data(), raw.size());
    ASSERT_EQ(expected.size(), format["elements"].get<std::size_t>());
    const DequantizeFunction dequantize = dequantize_for(format["id"].get<std::uint32_t>());
    ASSERT_NE(dequantize, nullptr) << name;
    dequantize(blocks.data(), found.data(), static_cast<std::int64_t>(found.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-6f * std::abs(expected[i]) + 1e-9f) << name << " element " << i;
    }
  }
}

TEST(Dequantize, UnknownAndRetiredIdsHaveNoFunction) {
  for (const std::uint32_t id : {4u, 5u, 26u, 31u, 36u, 43u, 1000u}) EXPECT_EQ(dequantize_for(id), nullptr);
}

}  // namespace
}  // namespace dgemma
