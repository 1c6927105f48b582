// Reading the recorded blocks of tests/kernels/golden (tools/reference/make_block_goldens.py).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dgemma {

inline std::vector<char> read_golden(const std::string& name) {
  std::ifstream in(std::string(DGEMMA_SOURCE_DIR) + "/tests/kernels/golden/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline nlohmann::json read_golden_case() {
  const std::vector<char> text = read_golden("case.json");
  return nlohmann::json::parse(text.begin(), text.end());
}

// A block type as ggml's table has it.
struct BlockType {
  const char* name;
  std::uint32_t id;
  int elements;
  int bytes;
};

inline constexpr BlockType kBlockTypes[] = {
    {"f16", 1, 1, 2},         {"q4_0", 2, 32, 18},    {"q4_1", 3, 32, 20},    {"q5_0", 6, 32, 22},
    {"q5_1", 7, 32, 24},      {"q8_0", 8, 32, 34},    {"q2_k", 10, 256, 84},  {"q3_k", 11, 256, 110},
    {"q4_k", 12, 256, 144},   {"q5_k", 13, 256, 176}, {"q6_k", 14, 256, 210}, {"iq4_nl", 20, 32, 18},
    {"iq4_xs", 23, 256, 136}, {"bf16", 30, 1, 2},     {"mxfp4", 39, 32, 17},  {"nvfp4", 40, 64, 36},
};

}  // namespace dgemma
