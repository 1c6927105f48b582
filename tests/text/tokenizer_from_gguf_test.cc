#include "text/tokenizer_from_gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace dgemma {
namespace {

using Ids = std::vector<std::int32_t>;

// The metadata of a GGUF file without tensors, written after the format's description.
class Metadata {
 public:
  Metadata& text(const std::string& key, const std::string& value) {
    start(key, 8);
    put_text(value);
    return *this;
  }
  Metadata& flag(const std::string& key, bool value) {
    start(key, 7);
    put(static_cast<std::uint8_t>(value));
    return *this;
  }
  Metadata& texts(const std::string& key, const std::vector<std::string>& values) {
    start_array(key, 8, values.size());
    for (const std::string& value : values) put_text(value);
    return *this;
  }
  Metadata& ints(const std::string& key, const std::vector<std::int32_t>& values) {
    start_array(key, 5, values.size());
    for (const std::int32_t value : values) put(value);
    return *this;
  }
  Metadata& floats(const std::string& key, const std::vector<float>& values) {
    start_array(key, 6, values.size());
    for (const float value : values) put(value);
    return *this;
  }
  Tokenizer load() const {
    std::string file = "GGUF";
    const auto append = [&file](auto value) { file.append(reinterpret_cast<const char*>(&value), sizeof value); };
    append(std::uint32_t{3});
    append(std::uint64_t{0});
    append(count_);
    file += bytes_;
    return tokenizer_from_gguf(GgufFile::parse(std::as_bytes(std::span(file)), "test"));
  }

 private:
  template <typename T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(const std::string& value) {
    put(std::uint64_t{value.size()});
    bytes_ += value;
  }
  void start(const std::string& key, std::uint32_t type) {
    ++count_;
    put_text("tokenizer.ggml." + key);
    put(type);
  }
  void start_array(const std::string& key, std::uint32_t type, std::size_t count) {
    start(key, 9);
    put(type);
    put(std::uint64_t{count});
  }

  std::string bytes_;
  std::uint64_t count_ = 0;
};

Metadata llama() {
  Metadata file;
  file.text("model", "llama").flag("add_space_prefix", false);
  file.texts("tokens", {"<unk>", "<turn>", "<run>", "a", "b", "c", "ab", "bc"});
  return file.ints("token_type", {2, 3, 4, 1, 1, 1, 1, 1});
}

TEST(TokenizerFromGguf, LlamaMergesByScore) {
  const Tokenizer tokenizer = llama().floats("scores", {0, 0, 0, -3, -4, -5, -2, -1}).load();
  EXPECT_EQ(tokenizer.encode("abc<run><turn>", SpecialTokens::parse), (Ids{3, 7, 2, 1}));
  const Ids plain = tokenizer.encode("abc<run><turn>", SpecialTokens::plain);
  EXPECT_EQ(Ids(plain.begin(), plain.begin() + 3), (Ids{3, 7, 2}));  // a user-defined token is no control token
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 1), 0);
}

TEST(TokenizerFromGguf, Gemma4MergesByRank) {
  Metadata file;
  file.text("model", "gemma4").texts("tokens", {"<unk>", "a", "b", "c", "ab", "bc"}).texts("merges", {"a b", "b c"});
  const Tokenizer tokenizer = file.ints("token_type", {2, 1, 1, 1, 1, 1}).load();
  EXPECT_EQ(tokenizer.encode("abcbc", SpecialTokens::plain), (Ids{4, 3, 5}));
}

TEST(TokenizerFromGguf, RefusesWhatDoesNotFit) {
  EXPECT_THROW(Metadata().load(), Error);
  EXPECT_THROW(Metadata().text("model", "gpt2").load(), Error);
  EXPECT_THROW(llama().load(), Error);                           // no scores
  EXPECT_THROW(llama().floats("scores", {0, 1}).load(), Error);  // too few
  EXPECT_THROW(Metadata().text("model", "llama").texts("tokens", {"a"}).load(), Error);
  Metadata gemma4;
  gemma4.text("model", "gemma4").texts("tokens", {"a", "b"}).ints("token_type", {1, 1});
  EXPECT_THROW(gemma4.load(), Error);                           // no merges
  EXPECT_THROW(gemma4.texts("merges", {"a b"}).load(), Error);  // no product
}

TEST(TokenizerFromGguf, EqualsHuggingFaceOnTheGemma4Vectors) {
  const std::string path = DGEMMA_SOURCE_DIR "/.cache/ggml-vocab-gemma-4.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "run scripts/fetch-vocabulary for .cache/ggml-vocab-gemma-4.gguf";
  const Tokenizer tokenizer = tokenizer_from_gguf(GgufFile::open(path));
  EXPECT_EQ(tokenizer.bos(), 2);
  EXPECT_EQ(tokenizer.eos(), 1);
  EXPECT_EQ(tokenizer.pad(), 0);
  std::ifstream in(DGEMMA_SOURCE_DIR "/tests/text/golden/gemma4-vectors.jsonl");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const nlohmann::json vector = nlohmann::json::parse(line);
    const Ids ids = vector["ids"].get<Ids>();
    if (vector.contains("text")) {
      EXPECT_EQ(tokenizer.encode(vector["text"].get<std::string>(), SpecialTokens::parse), ids) << line;
    }
    if (!vector.contains("decode_keep")) continue;
    EXPECT_EQ(tokenizer.decode(ids, false), vector["decode_keep"].get<std::string>()) << line;
    EXPECT_EQ(tokenizer.decode(ids, true), vector["decode_skip"].get<std::string>()) << line;
  }
  EXPECT_EQ(count, 142);
}

}  // namespace
}  // namespace dgemma
