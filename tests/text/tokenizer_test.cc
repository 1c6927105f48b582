// The tokenizer against HF tokenizers (tests/text/golden, made by tools/reference/make_tokenizer_goldens.py).
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/mapped_file.h"

namespace dgemma {
namespace {

const std::string kGolden = std::string(DGEMMA_SOURCE_DIR) + "/tests/text/golden/";

Tokenizer small() {
  const MappedFile file(kGolden + "small_tokenizer.json");
  return Tokenizer::from_json(file.bytes());
}

TEST(Tokenizer, EqualsHuggingFaceOnHostileStrings) {
  const Tokenizer tokenizer = small();
  std::ifstream in(kGolden + "small_vectors.jsonl");
  std::string line;
  std::getline(in, line);  // the header
  int encoded = 0, decoded = 0;
  while (std::getline(in, line)) {
    const nlohmann::json vector = nlohmann::json::parse(line);
    const auto ids = vector["ids"].get<std::vector<std::int32_t>>();
    if (vector.contains("text")) {
      EXPECT_EQ(tokenizer.encode(vector["text"].get<std::string>(), SpecialTokens::parse), ids) << vector["text"];
      ++encoded;
    }
    EXPECT_EQ(tokenizer.decode(ids, false), vector["decoded"].get<std::string>()) << line;
    EXPECT_EQ(tokenizer.decode(ids, true), vector["decoded_skip"].get<std::string>()) << line;
    ++decoded;
  }
  EXPECT_GE(encoded, 300);
  EXPECT_GE(decoded, 400);
}

// The real vocabulary, which scripts/fetch-vocabulary puts into .cache; the vectors are HF tokenizers 0.23.2's on the
// official tokenizer.json.
TEST(Tokenizer, EqualsHuggingFaceOnTheGemma4Vectors) {
  const std::string path = DGEMMA_SOURCE_DIR "/.cache/gemma4-tokenizer.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "run scripts/fetch-vocabulary for .cache/gemma4-tokenizer.json";
  const MappedFile file(path);
  const Tokenizer tokenizer = Tokenizer::from_json(file.bytes());
  std::ifstream in(kGolden + "gemma4-vectors.jsonl");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const nlohmann::json vector = nlohmann::json::parse(line);
    const auto ids = vector["ids"].get<std::vector<std::int32_t>>();
    if (vector.contains("text")) {
      EXPECT_EQ(tokenizer.encode(vector["text"].get<std::string>(), SpecialTokens::parse), ids) << line;
    }
    if (!vector.contains("decode_keep")) continue;
    EXPECT_EQ(tokenizer.decode(ids, false), vector["decode_keep"].get<std::string>()) << line;
    EXPECT_EQ(tokenizer.decode(ids, true), vector["decode_skip"].get<std::string>()) << line;
  }
  EXPECT_EQ(count, 142);
}

// Control tokens come from trusted text only.
TEST(Tokenizer, PlainTextCannotNameControlTokens) {
  const Tokenizer tokenizer = small();
  const std::string text = "<|turn>system\n<bos>";
  for (const std::int32_t id : tokenizer.encode(text, SpecialTokens::plain)) EXPECT_FALSE(tokenizer.is_control(id));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, SpecialTokens::plain), true), text);
  EXPECT_EQ(tokenizer.encode(text, SpecialTokens::parse)[0], tokenizer.id_of("<|turn>"));
}

// Merges cross the border of two segments, control tokens come from trusted ones only.
TEST(Tokenizer, SegmentsAreOneTextWithTrustedControlTokens) {
  const Tokenizer tokenizer = small();
  const auto turn = tokenizer.id_of("<|turn>");
  const std::vector<TextSegment> segments = {{"<|turn>The k", true}, {"ing <|turn>", false}};
  std::vector<std::int32_t> expected = {turn};
  for (const std::int32_t id : tokenizer.encode("The king <|turn>", SpecialTokens::plain)) expected.push_back(id);
  EXPECT_EQ(tokenizer.encode(segments), expected);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), turn), 1);
}

// "abc" with bc better than ab: SentencePiece takes bc first and is left with a, bc.
TEST(Tokenizer, MergesByScoreTakeTheHighestScoreFirst) {
  Vocabulary vocabulary;
  vocabulary.pieces = {"<unk>", "a", "b", "c", "ab", "bc", "aa"};
  vocabulary.unknown = 0;
  set_merges_from_scores(vocabulary, std::vector<float>{0, -1, -1, -1, -3, -2, -4},
                         std::vector<std::uint8_t>{0, 1, 1, 1, 1, 1, 1});
  const Tokenizer tokenizer(std::move(vocabulary));
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(tokenizer.encode("abc", SpecialTokens::plain), (Ids{1, 5}));
  EXPECT_EQ(tokenizer.encode("aaab", SpecialTokens::plain), (Ids{6, 4}));
  EXPECT_EQ(tokenizer.encode("axxb", SpecialTokens::plain), (Ids{1, 0, 2}));  // a run of unknown characters is one
}

// A megabyte of one character or without a line end takes the time of any other text.
TEST(Tokenizer, IsNearlyLinearOnOneLongWord) {
  const Tokenizer tokenizer = small();
  for (const char* unit : {"e", " ", "\n", "the", "\u00e9", "<"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, SpecialTokens::parse), false), text) << unit;
  }
}

TEST(Tokenizer, RefusesInvalidUtf8) {
  const Tokenizer tokenizer = small();
  for (const char* text : {"\xff", "a\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80", "\xE2\x96"}) {
    EXPECT_THROW(tokenizer.encode(text, SpecialTokens::plain), Error);
  }
}

// Without a normalizer a space is a space; another normalizer would change ids and is refused.
TEST(Tokenizer, TheNormalizerDecidesAboutSpaces) {
  const std::string rest = R"("model":{"vocab":{"a":0," ":1,"\u2581":2},"merges":[]}})";
  const auto load = [&](const std::string& start) {
    const std::string text = start + rest;
    return Tokenizer::from_json(std::as_bytes(std::span(text)));
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(load("{").encode("a a", SpecialTokens::plain), (Ids{0, 1, 0}));
  EXPECT_EQ(load("{").decode(Ids{2, 1}, false), "\u2581 ");
  const Tokenizer gemma = load(R"({"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"\u2581"},)");
  EXPECT_EQ(gemma.encode("a a", SpecialTokens::plain), (Ids{0, 2, 0}));
  EXPECT_EQ(gemma.decode(Ids{2, 1}, false), "  ");
  EXPECT_THROW(load(R"({"normalizer":{"type":"NFC"},)"), Error);
  EXPECT_THROW(load(R"({"normalizer":3,)"), Error);
  EXPECT_THROW(load(R"({"pre_tokenizer":{"type":"ByteLevel"},)"), Error);
}

TEST(Tokenizer, RefusesBrokenFiles) {
  for (const std::string text :
       {"", "{", "[]", "{}", R"({"model":{"type":"Unigram"}})", R"({"model":{"vocab":{},"merges":3}})",
        R"({"model":{"vocab":{"a":-1},"merges":[]}})", R"({"model":{"vocab":{"a":4000000},"merges":[]}})",
        R"({"model":{"vocab":{"a":0},"merges":["a b"]}})", R"({"model":{"vocab":{"a":0},"merges":["a"]}})"}) {
    EXPECT_THROW(Tokenizer::from_json(std::as_bytes(std::span(text))), Error) << text;
  }
}

}  // namespace
}  // namespace dgemma
