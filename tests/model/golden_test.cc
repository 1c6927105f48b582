// The forward pass against tensors recorded from Transformers (tests/golden/README.md). Slots are compared in the order
// they are computed, so that the first failure names the op at fault.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "format/safetensors.h"
#include "golden_file.h"
#include "model/bind.h"
#include "model/forward.h"
#include "model/hf_config.h"
#include "ops/head.h"
#include "ops/linear.h"

namespace dgemma {
namespace {

// The tiny checkpoint, bound.
struct Tiny {
  SafetensorsFile file = SafetensorsFile::open(kGolden + "tiny/model.safetensors");
  ModelConfig config;
  Weights weights;
  explicit Tiny(const char* config_name = "config.json")
      : config(config_from_hugging_face(read_text(kGolden + "tiny/" + config_name))),
        weights(bind(file, Naming::hugging_face, config)) {}
};

// One case's tensors.
class Case {
 public:
  explicit Case(const std::string& name) : file_(SafetensorsFile::open(kGolden + name + "/tensors.safetensors")) {}

  std::vector<std::int32_t> ids(const std::string& name) const { return golden_values<std::int32_t>(file_, name); }
  std::vector<float> floats(const std::string& name) const { return golden_values<float>(file_, name); }

  // Every element within 2e-4 of the tensor's largest absolute value (the cases' stated tolerance).
  void compare(const std::string& name, View found) const {
    const std::vector<float> expected = floats(name);
    ASSERT_EQ(static_cast<std::int64_t>(expected.size()), found.rows * found.cols) << name;
    float largest = 0, error = 0;
    for (std::int64_t i = 0; i < found.rows; ++i) {
      for (std::int64_t j = 0; j < found.cols; ++j) {
        largest = std::max(largest, std::abs(expected[i * found.cols + j]));
        error = std::max(error, std::abs(expected[i * found.cols + j] - found.row(i)[j]));
      }
    }
    EXPECT_LE(error, 2e-4f * largest) << name << ": largest value " << largest;
    worst_ = std::max(worst_, error / largest);
  }
  float worst() const { return worst_; }

 private:
  SafetensorsFile file_;
  mutable float worst_ = 0;
};

LayerObserver compare_slots(const Case& golden, const std::string& prefix, std::int64_t routed) {
  return [&golden, prefix, routed](std::size_t layer, const Slots& s, const Routing& routing) {
    const std::string at = prefix + "layer." + std::to_string(layer) + ".";
    if (layer == 1 || layer == 2) {
      golden.compare(at + "q", s.q);
      golden.compare(at + "k", s.k);
      golden.compare(at + "v", s.v);
      golden.compare(at + "attn", s.attn);
      golden.compare(at + "mid", s.mid);
      golden.compare(at + "dense", s.dense);
      EXPECT_EQ(golden.ids(at + "router_ids"), routing.experts) << at;
      std::vector<float> weights = routing.weights;
      golden.compare(at + "router_weights", {weights.data(), routed, routing.used, routing.used});
      golden.compare(at + "moe", s.moe);
    }
    golden.compare(at + "out", s.x);
  };
}

// Runs ids through the encoder role in chunks of at most `chunk` rows; `observer` sees the last chunk.
void encode(Context& c, const Tiny& tiny, KvCache& cache, const std::vector<std::int32_t>& ids, std::int64_t chunk,
            Activations& a, const LayerObserver& observer = {}) {
  for (std::size_t begin = 0; begin < ids.size(); begin += static_cast<std::size_t>(chunk)) {
    const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(chunk), ids.size() - begin);
    const Pass pass({{Role::encoder, static_cast<std::int64_t>(count), &cache}});
    embed_pass(c, tiny.config, tiny.weights, pass, std::span(ids).subspan(begin, count), {}, a);
    stack_forward(c, tiny.config, tiny.weights, pass, a, observer);
  }
}

void compare_logits(Context& c, const Tiny& tiny, const Case& golden, const std::string& name, View x) {
  Matrix normed, logits;
  const View n = normed.reshape(x.rows, x.cols), z = logits.reshape(x.rows, tiny.config.vocabulary);
  final_norm(c, tiny.config, tiny.weights, n, x);
  head_logits(c, z, n, tiny.weights.head, tiny.config.final_logit_softcapping);
  golden.compare(name, z);
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EncoderPass) {
  const Tiny tiny;
  const Case golden(std::string("encode_") + GetParam());
  Context c(2);
  KvCache cache(tiny.config, 64);
  Activations a;
  const std::vector<std::int32_t> ids = golden.ids("ids");
  const Pass pass({{Role::encoder, static_cast<std::int64_t>(ids.size()), &cache}});
  embed_pass(c, tiny.config, tiny.weights, pass, ids, {}, a);
  golden.compare("x0", a.slots().x);
  stack_forward(c, tiny.config, tiny.weights, pass, a, compare_slots(golden, "", pass.rows()));
  const View last = a.slots().x.slice(pass.rows() - 4, 4);
  compare_logits(c, tiny, golden, "logits", last);
  RecordProperty("worst_relative_error", std::to_string(golden.worst()));
}

TEST_P(Golden, DecoderPass) {
  const Tiny tiny;
  const Case golden(std::string("canvas_") + GetParam());
  Context c(2);
  KvCache cache(tiny.config, 64);
  Activations a;
  encode(c, tiny, cache, golden.ids("prompt_ids"), 1000, a);
  for (const std::string step : {"step0.", "step1."}) {
    const Pass pass({{Role::decoder, 16, &cache}});
    std::vector<float> signal = golden.floats(step + "self_conditioning_signal");
    const View u = step == "step0." ? View{} : View{signal.data(), 16, 64, 64};
    embed_pass(c, tiny.config, tiny.weights, pass, golden.ids(step + "canvas_ids"), u, a);
    golden.compare(step + "x0", a.slots().x);
    stack_forward(c, tiny.config, tiny.weights, pass, a, compare_slots(golden, step, 16));
    compare_logits(c, tiny, golden, step + "logits", a.slots().x);
  }
}

INSTANTIATE_TEST_SUITE_P(PromptShorterAndLongerThanTheWindow, Golden, testing::Values("short", "long"));

// The streamed head's soft embedding is the recorded self-conditioning signal: the logits of step 0, divided by 0.6.
TEST(GoldenHead, SelfConditioningSignalOfTheStepBefore) {
  const Tiny tiny;
  const Case golden("canvas_short");
  Context c(2);
  KvCache cache(tiny.config, 64);
  Activations a;
  encode(c, tiny, cache, golden.ids("prompt_ids"), 1000, a);
  const Pass pass({{Role::decoder, 16, &cache}});
  embed_pass(c, tiny.config, tiny.weights, pass, golden.ids("step0.canvas_ids"), {}, a);
  stack_forward(c, tiny.config, tiny.weights, pass, a);
  Matrix normed, soft;
  const View n = normed.reshape(16, 64), u = soft.reshape(16, 64);
  final_norm(c, tiny.config, tiny.weights, n, a.slots().x);
  std::vector<RowPrediction> rows(16);
  std::vector<RowDraw> draws(16);
  for (std::uint64_t i = 0; i < 16; ++i) draws[i] = {0.6f, 1, 2, i};
  HeadBuffers buffers;
  head_predict(c, rows, u, n, tiny.weights.embedding, tiny.config.final_logit_softcapping, draws, {}, buffers);
  for (std::int64_t i = 0; i < 16; ++i) c.kernels().multiply(u.row(i), tiny.config.embedding_scale, 64);
  golden.compare("step1.self_conditioning_signal", u);
}

TEST(GoldenBlocks, CanvasAfterOneTwoThreeBlocks) {
  const Tiny tiny;
  const Case golden("canvas_blocks");
  Context c(2);
  KvCache cache(tiny.config, 128);
  Activations a;
  encode(c, tiny, cache, golden.ids("prompt_ids"), 1000, a);
  const std::vector<std::int32_t> blocks = golden.ids("block_ids"), canvas = golden.ids("canvas_ids");
  for (int b = 0; b < 3; ++b) {
    const std::string at = "block" + std::to_string(b) + ".";
    encode(c, tiny, cache, {blocks.begin() + 16 * b, blocks.begin() + 16 * (b + 1)}, 1000, a);
    Matrix normed;
    const View n = normed.reshape(16, 64);
    final_norm(c, tiny.config, tiny.weights, n, a.slots().x);
    golden.compare(at + "encoded", n);
    const Pass pass({{Role::decoder, 16, &cache}});
    embed_pass(c, tiny.config, tiny.weights, pass, canvas, {}, a);
    stack_forward(c, tiny.config, tiny.weights, pass, a);
    compare_logits(c, tiny, golden, at + "logits", a.slots().x);
  }
}

// Both serialisations of the full layers' sizes give the same numbers.
TEST(HuggingFaceConfig, ReleasedStyleEqualsNewStyle) {
  const Tiny now, released("config_released_style.json");
  ASSERT_EQ(now.config.layers.size(), released.config.layers.size());
  for (std::size_t i = 0; i < now.config.layers.size(); ++i) {
    EXPECT_EQ(now.config.layers[i].head_dim, released.config.layers[i].head_dim);
    EXPECT_EQ(now.config.layers[i].kv_heads, released.config.layers[i].kv_heads);
    EXPECT_EQ(now.config.layers[i].rotating_pairs, released.config.layers[i].rotating_pairs);
  }
  EXPECT_EQ(now.config.layers[2].head_dim, 32);
  EXPECT_EQ(now.config.layers[2].rotating_pairs, 4);
}

// Frequencies of the published shapes (spec architecture.md 2.5, check values).
TEST(HuggingFaceConfig, RopeFrequenciesOfThePublishedShapes) {
  LayerConfig full;
  full.head_dim = 512;
  full.rotating_pairs = 64;
  full.rope_theta = 1e6f;
  const std::vector<float> f = rope_frequencies(full);
  EXPECT_NEAR(f[1], 0.9474635, 1e-6);
  EXPECT_NEAR(f[63], 0.0333762, 1e-7);
  EXPECT_EQ(f[64], 0.0f);
  LayerConfig sliding;
  sliding.head_dim = 256;
  sliding.rotating_pairs = 128;
  sliding.rope_theta = 1e4f;
  EXPECT_NEAR(rope_frequencies(sliding)[127], 1.0746078e-4, 1e-10);
}

// Properties that need no golden: the bits of a row depend on its own sequence only.
class Invariance : public testing::Test {
 protected:
  // Logit-side rows of a canvas behind a prompt, in one pass with `others` sequences of other lengths.
  std::vector<float> canvas_rows(int threads, std::int64_t chunk, int others) {
    const Tiny tiny;
    const Case golden("canvas_long");
    Context c(threads);
    Activations a;
    std::vector<KvCache> caches;
    for (int i = 0; i <= others; ++i) caches.emplace_back(tiny.config, 64);
    encode(c, tiny, caches[0], golden.ids("prompt_ids"), chunk, a);
    std::vector<std::int32_t> ids;
    std::vector<Segment> segments;
    for (int i = others; i >= 1; --i) {
      encode(c, tiny, caches[i], std::vector<std::int32_t>(static_cast<std::size_t>(3 * i), 7), 2, a);
      const Role role = i % 2 == 0 ? Role::encoder : Role::decoder;
      segments.push_back({role, 5 + i, &caches[i]});
      ids.insert(ids.end(), static_cast<std::size_t>(5 + i), 11 + i);
    }
    const std::vector<std::int32_t> canvas = golden.ids("step0.canvas_ids");
    ids.insert(ids.end(), canvas.begin(), canvas.end());
    segments.push_back({Role::decoder, 16, &caches[0]});
    const Pass pass(segments);
    embed_pass(c, tiny.config, tiny.weights, pass, ids, {}, a);
    stack_forward(c, tiny.config, tiny.weights, pass, a);
    const View rows = a.slots().x.slice(pass.rows() - 16, 16);
    return {rows.data, rows.data + 16 * rows.cols};
  }
};

TEST_F(Invariance, ThreadsChunksAndNeighboursChangeNothing) {
  const std::vector<float> alone = canvas_rows(1, 1000, 0);
  EXPECT_EQ(alone, canvas_rows(8, 1000, 0));
  EXPECT_EQ(alone, canvas_rows(1, 1, 0));
  EXPECT_EQ(alone, canvas_rows(2, 7, 0));
  EXPECT_EQ(alone, canvas_rows(2, 13, 3));
}

// What the last layer leaves out for rows that nobody reads changes neither the caches nor the other rows. The pass
// mixes segments, so that kept rows lie between others.
TEST_F(Invariance, RowsThatNobodyReadChangeNothing) {
  const Tiny tiny;
  struct Result {
    std::vector<float> cached, outputs;
    std::int64_t last_layer_rows = 0;
  };
  // Rows of four segments whose output is kept: `outputs`, or all of them, from which the same are then taken.
  constexpr std::int64_t kRows[] = {9, 16, 14, 5};
  const auto run = [&](Precision precision, const std::vector<std::int64_t>& outputs, bool all) {
    Context c(2, precision);
    Activations a;
    std::vector<KvCache> caches;
    for (int i = 0; i < 4; ++i) caches.emplace_back(tiny.config, 64);
    for (int i = 0; i < 4; ++i)
      encode(c, tiny, caches[i], std::vector<std::int32_t>(static_cast<std::size_t>(3 + 5 * i), 40 + i), 1000, a);
    std::vector<Segment> segments;
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 4; ++i) {
      segments.push_back({i == 1 ? Role::decoder : Role::encoder, kRows[i], &caches[i], all ? kAllRows : outputs[i]});
      for (std::int64_t row = 0; row < kRows[i]; ++row)
        ids.push_back(static_cast<std::int32_t>((i * 131 + row * 37) % 512));
    }
    const Pass pass(segments);
    embed_pass(c, tiny.config, tiny.weights, pass, ids, {}, a);
    stack_forward(c, tiny.config, tiny.weights, pass, a);
    Result result;
    result.last_layer_rows = a.slots().x.rows;
    const auto take = [](std::vector<float>& out, View x) {
      for (std::int64_t i = 0; i < x.rows; ++i) out.insert(out.end(), x.row(i), x.row(i) + x.cols);
    };
    for (const KvCache& cache : caches) {
      for (std::size_t layer = 0; layer < tiny.config.layers.size(); ++layer) {
        for (const KeyPiece& piece : cache.pieces(layer)) {
          take(result.cached, piece.k);
          take(result.cached, piece.v);
        }
      }
    }
    std::int64_t end = 0;
    for (int i = 0; i < 4; ++i) {
      end += all ? kRows[i] : outputs[i];
      take(result.outputs, a.slots().x.slice(end - outputs[i], outputs[i]));
    }
    return result;
  };
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    for (const std::vector<std::int64_t>& outputs :
         {std::vector<std::int64_t>{0, 16, 1, 3}, {1, 7, 14, 0}, {0, 0, 0, 0}}) {
      const Result left_out = run(precision, outputs, false), computed = run(precision, outputs, true);
      EXPECT_EQ(left_out.last_layer_rows, std::accumulate(outputs.begin(), outputs.end(), std::int64_t{0}));
      EXPECT_EQ(computed.last_layer_rows, 44);
      EXPECT_EQ(left_out.cached, computed.cached);
      EXPECT_EQ(left_out.outputs, computed.outputs);
    }
  }
}

TEST(Cache, RefusesMoreThanPlanned) {
  const Tiny tiny;
  KvCache cache(tiny.config, 10);
  try {
    const Pass pass({{Role::encoder, 11, &cache}});
    FAIL() << "expected a resource error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::resource);
  }
}

}  // namespace
}  // namespace dgemma
