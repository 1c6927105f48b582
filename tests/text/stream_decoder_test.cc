#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"

namespace dgemma {
namespace {

const std::string kGolden = DGEMMA_SOURCE_DIR "/tests/text/golden/";

const Tokenizer& small() {
  static const MappedFile file(kGolden + "small_tokenizer.json");
  static const Tokenizer tokenizer = Tokenizer::from_json(file.bytes());
  return tokenizer;
}

std::vector<std::int32_t> bytes(std::initializer_list<int> values) {
  std::vector<std::int32_t> ids;
  for (const int value : values) ids.push_back(small().id_of(fmt::format("<0x{:02X}>", value)));
  return ids;
}

// Every recorded text, one id at a time, is what HF decoded from all ids at once.
TEST(StreamDecoder, EqualsTheRecordedDecodingOfWholeTexts) {
  std::ifstream file(kGolden + "small_vectors.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const auto vector = nlohmann::json::parse(line);
    if (!vector.contains("text")) continue;
    StreamDecoder decoder(small(), false);
    std::string text;
    for (const std::int32_t id : vector.at("ids").get<std::vector<std::int32_t>>()) text += decoder.push({&id, 1});
    EXPECT_EQ(text + decoder.finish(), vector.at("decoded").get<std::string>());
  }
  EXPECT_GT(count, 100);
}

TEST(StreamDecoder, HoldsBackACharacterAcrossPushes) {
  StreamDecoder decoder(small(), true);
  EXPECT_EQ(decoder.push(bytes({0xF0, 0x9F})), "");
  EXPECT_EQ(decoder.push(bytes({0xAB})), "");
  EXPECT_EQ(decoder.push(bytes({0xA8, 0xC3})), "\U0001FAE8");
  EXPECT_EQ(decoder.push(bytes({0xA9})), "é");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ReplacesImpossibleBytesAtOnce) {
  StreamDecoder decoder(small(), true);
  EXPECT_EQ(decoder.push(bytes({0xFF})), "\uFFFD");
  EXPECT_EQ(decoder.push(bytes({0xC3, 0x41})), "\uFFFDA");
  EXPECT_EQ(decoder.push(bytes({0xED, 0xA0})), "\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(decoder.push(bytes({0xE2, 0x96})), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD\uFFFD");
  EXPECT_EQ(decoder.push(bytes({0x41})), "A");
}

TEST(StreamDecoder, IgnoresIdsOutsideTheVocabulary) {
  StreamDecoder decoder(small(), true);
  const std::vector<std::int32_t> ids = {-1, 1 << 30};
  EXPECT_EQ(decoder.push(ids), "");
}

}  // namespace
}  // namespace dgemma
