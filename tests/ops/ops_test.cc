// Each op against the formula in double precision, and the properties that batching rests on.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/quantize.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/experts.h"
#include "ops/head.h"
#include "ops/linear.h"

namespace dgemma {
namespace {

// An owned random matrix.
struct Data {
  std::vector<float> values;
  View view;
  Data(std::int64_t rows, std::int64_t cols, unsigned seed, float scale = 1.0f)
      : values(static_cast<std::size_t>(rows * cols)), view{values.data(), rows, cols, cols} {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0f, scale);
    for (float& value : values) value = normal(generator);
  }
  WeightView weight() const {
    return {reinterpret_cast<const std::byte*>(values.data()), view.rows, view.cols, DType::f32};
  }
};

// Rounded so that bfloat16 holds the values exactly.
struct RoundedData : Data {
  RoundedData(std::int64_t rows, std::int64_t cols, unsigned seed, float scale = 1.0f) : Data(rows, cols, seed, scale) {
    for (float& value : values) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
  }
  // The same in two bytes each, as a stored matrix.
  std::vector<std::uint16_t> words() const {
    std::vector<std::uint16_t> out;
    for (const float value : values)
      out.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    return out;
  }
};

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

TEST(Attention, EqualsTheFormulaForAnyCutOfTheKeys) {
  Context c(2);
  const std::int64_t rows = 19, heads = 4, kv_heads = 2, head_dim = 10, keys = 41;
  Data q(rows, heads * head_dim, 1), k(keys, kv_heads * head_dim, 2), v(keys, kv_heads * head_dim, 3);
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows; ++i) ranges.push_back({std::max<std::int64_t>(0, i - 5), 22 + i});
  Data whole(rows, heads * head_dim, 0), cut(rows, heads * head_dim, 0);
  const std::vector<KeyPiece> one{{k.view, v.view}};
  attention(c, whole.view, q.view, one, 0, ranges, head_dim, 0.5f);
  const std::vector<KeyPiece> three{{k.view.slice(0, 7), v.view.slice(0, 7)},
                                    {k.view.slice(7, 20), v.view.slice(7, 20)},
                                    {k.view.slice(27, 14), v.view.slice(27, 14)}};
  attention(c, cut.view, q.view, three, 0, ranges, head_dim, 0.5f);
  EXPECT_EQ(whole.values, cut.values);

  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t column = h / 2 * head_dim;
      std::vector<double> weights;
      double sum = 0;
      for (std::int64_t j = ranges[i].first; j < ranges[i].last; ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < head_dim; ++d)
          score += double{q.view.row(i)[h * head_dim + d]} * k.view.row(j)[column + d];
        weights.push_back(std::exp(0.5 * score));
        sum += weights.back();
      }
      for (std::int64_t d = 0; d < head_dim; ++d) {
        double expected = 0;
        for (std::size_t j = 0; j < weights.size(); ++j)
          expected += weights[j] / sum * v.view.row(ranges[i].first + j)[column + d];
        EXPECT_NEAR(whole.view.row(i)[h * head_dim + d], expected, 2e-5);
      }
    }
  }
}

TEST(Attention, ARowDoesNotDependOnTheRowsBesideIt) {
  Context c(1);
  Data q(18, 32, 4), k(30, 32, 5), v(30, 32, 6), together(18, 32, 0), alone(1, 32, 0);
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < 18; ++i) ranges.push_back({i / 2, 12 + i});
  const std::vector<KeyPiece> pieces{{k.view, v.view}};
  attention(c, together.view, q.view, pieces, 0, ranges, 16, 1.0f);
  for (std::int64_t i = 0; i < 18; ++i) {
    attention(c, alone.view, q.view.slice(i, 1), pieces, 0, std::span(&ranges[i], 1), 16, 1.0f);
    EXPECT_TRUE(std::equal(alone.values.begin(), alone.values.end(), together.view.row(i)));
  }
}

// Query row i's heads against keys of which it sees all from the i-th on; spans several spans, chunks and panels of the
// implementation.
struct LongAttention {
  static constexpr std::int64_t kRows = 37, kHeads = 6, kKvHeads = 2, kHeadDim = 32, kKeys = 2600;
  RoundedData q{kRows, kHeads*kHeadDim, 31, 0.5f}, k{kKeys, kKvHeads*kHeadDim, 32}, v{kKeys, kKvHeads*kHeadDim, 33};
  std::vector<KeyRange> ranges;
  LongAttention() {
    for (std::int64_t i = 0; i < kRows; ++i) ranges.push_back({70 + 40 * i, 1600 + 27 * i});
    ranges[5] = {2047, 2048};
    ranges[6] = {70, kKeys};
  }
  std::vector<float> run(Context& c, std::span<const KeyPiece> pieces, std::int64_t dropped) const {
    std::vector<KeyRange> left = ranges;
    for (KeyRange& range : left) range = {range.first - dropped, range.last - dropped};
    Data out(kRows, kHeads * kHeadDim, 0);
    attention(c, out.view, q.view, pieces, dropped, left, kHeadDim, 0.25f);
    return out.values;
  }
};

// Operands are exact in bfloat16, so what is left are the probabilities, each rounded by at most 2^-9 of itself, and
// sums in f32.
TEST(AttentionBf16, EqualsTheFormulaUpToTheRoundingOfProbabilities) {
  const LongAttention a;
  Context c(2, Precision::bf16);
  const std::vector<KeyPiece> pieces{{a.k.view, a.v.view}};
  const std::vector<float> out = a.run(c, pieces, 0);
  for (std::int64_t i = 0; i < a.kRows; ++i) {
    for (std::int64_t h = 0; h < a.kHeads; ++h) {
      const std::int64_t column = h / (a.kHeads / a.kKvHeads) * a.kHeadDim;
      std::vector<double> sum(a.kHeadDim, 0.0), absolute(a.kHeadDim, 0.0);
      double total = 0;
      for (std::int64_t j = a.ranges[i].first; j < a.ranges[i].last; ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < a.kHeadDim; ++d)
          score += double{a.q.view.row(i)[h * a.kHeadDim + d]} * a.k.view.row(j)[column + d];
        const double weight = std::exp(0.25 * score);
        total += weight;
        for (std::int64_t d = 0; d < a.kHeadDim; ++d) {
          sum[d] += weight * a.v.view.row(j)[column + d];
          absolute[d] += weight * std::abs(a.v.view.row(j)[column + d]);
        }
      }
      for (std::int64_t d = 0; d < a.kHeadDim; ++d) {
        EXPECT_NEAR(out[(i * a.kHeads + h) * a.kHeadDim + d], sum[d] / total, absolute[d] / total * 0x1p-9 + 2e-5)
            << "row " << i << ", head " << h;
      }
    }
  }
}

TEST(AttentionBf16, HasTheSameBitsForAnyCutOfTheKeysAnyRowsAndAnyThreads) {
  const LongAttention a;
  Context c(2, Precision::bf16), c1(1, Precision::bf16);
  const std::vector<KeyPiece> whole{{a.k.view, a.v.view}};
  const std::vector<float> expected = a.run(c, whole, 0);
  const auto piece = [&](std::int64_t begin, std::int64_t count) {
    return KeyPiece{a.k.view.slice(begin, count), a.v.view.slice(begin, count)};
  };
  const std::vector<KeyPiece> cut{piece(0, 7), piece(7, 20), piece(27, 2000), piece(2027, a.kKeys - 2027)};
  EXPECT_EQ(a.run(c1, cut, 0), expected);
  const std::vector<KeyPiece> dropped{piece(69, 400), piece(469, a.kKeys - 469)};  // as a sliding window drops them
  EXPECT_EQ(a.run(c, dropped, 69), expected);
  Data alone(1, a.kHeads * a.kHeadDim, 0);
  for (std::int64_t i = 0; i < a.kRows; ++i) {
    attention(c, alone.view, a.q.view.slice(i, 1), whole, 0, std::span(&a.ranges[i], 1), a.kHeadDim, 0.25f);
    EXPECT_TRUE(std::equal(alone.values.begin(), alone.values.end(), expected.data() + i * alone.view.cols));
  }
}

// Rows that a group names are the same as a matrix of those rows, whatever products round to.
TEST(Linear, GatheredRowsHaveTheBitsOfTheirCopies) {
  const std::int64_t inputs = 64;
  const RoundedData x(40, inputs, 61), w(70, inputs, 62);
  const std::vector<std::uint16_t> words = w.words();
  std::vector<std::byte> q8(static_cast<std::size_t>(70 * inputs / 32 * 34));
  quantize_q8_0(w.values.data(), q8.data(), 70 * inputs);
  const WeightView stored[] = {w.weight(),
                               {reinterpret_cast<const std::byte*>(words.data()), 70, inputs, DType::bf16},
                               {q8.data(), 70, inputs, DType::q8_0}};
  const std::vector<std::int32_t> first{39, 0, 7},
      second{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 39};
  const auto taken = [&](const std::vector<std::int32_t>& rows) {
    Data out(static_cast<std::int64_t>(rows.size()), inputs, 0);
    for (std::size_t r = 0; r < rows.size(); ++r)
      std::copy_n(x.view.row(rows[r]), inputs, out.view.row(static_cast<std::int64_t>(r)));
    return out;
  };
  const Data first_x = taken(first), second_x = taken(second);
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    Context c(2, precision);
    for (const WeightView& weight : stored) {
      Data gathered(20, 70, 0), copied(20, 70, 1);
      const std::vector<LinearGroup> by_rows{{gathered.view.slice(0, 3), x.view, weight, first},
                                             {gathered.view.slice(3, 17), x.view, weight, second}};
      linear_groups(c, by_rows);
      linear(c, copied.view.slice(0, 3), first_x.view, weight);
      linear(c, copied.view.slice(3, 17), second_x.view, weight);
      EXPECT_EQ(gathered.values, copied.values);
    }
  }
}

// Both sides exact in bfloat16: only the order of f32 sums is left. Groups of odd sizes share one call.
TEST(LinearBf16, EqualsTheFormula) {
  Context c(2, Precision::bf16);
  const std::int64_t inputs = 96;
  const RoundedData x(60, inputs, 41), w(77, inputs, 42);
  const std::vector<std::uint16_t> words = w.words();
  const WeightView weight{reinterpret_cast<const std::byte*>(words.data()), 77, inputs, DType::bf16};
  Data out(60, 77, 0);
  const std::vector<LinearGroup> groups{{out.view.slice(0, 1), x.view.slice(0, 1), weight},
                                        {out.view.slice(1, 17), x.view.slice(1, 17), weight},
                                        {out.view.slice(18, 42), x.view.slice(18, 42), weight}};
  linear_groups(c, groups);
  for (std::int64_t i = 0; i < 60; ++i) {
    for (std::int64_t j = 0; j < 77; ++j) {
      double expected = 0;
      for (std::int64_t d = 0; d < inputs; ++d) expected += double{x.view.row(i)[d]} * w.view.row(j)[d];
      EXPECT_NEAR(out.view.row(i)[j], expected, 1e-4);
    }
  }
}

TEST(Rope, RotatesPairsByPositionTimesFrequency) {
  Context c(1);
  Data x(3, 16, 7);  // two heads of 8
  const std::vector<float> before = x.values, frequencies{1.0f, 0.1f, 0.0f, 0.0f};
  const std::vector<std::int32_t> positions{0, 5, 900};
  rope(c, x.view, positions, frequencies);
  for (int i = 0; i < 3; ++i) {
    for (int h = 0; h < 2; ++h) {
      for (int j = 0; j < 4; ++j) {
        const double angle = static_cast<double>(positions[i]) * frequencies[j];
        const double first = before[i * 16 + h * 8 + j], second = before[i * 16 + h * 8 + j + 4];
        EXPECT_NEAR(x.view.row(i)[h * 8 + j], first * std::cos(angle) - second * std::sin(angle), 2e-4);
        EXPECT_NEAR(x.view.row(i)[h * 8 + j + 4], second * std::cos(angle) + first * std::sin(angle), 2e-4);
      }
    }
  }
}

TEST(Norm, PerHeadAndWholeRow) {
  Context c(2);
  Data x(5, 24, 8), out(5, 24, 0);
  Data weight(1, 8, 9);
  rms_norm(c, out.view, x.view, weight.values, 1e-6f);
  for (int i = 0; i < 5; ++i) {
    for (int h = 0; h < 3; ++h) {
      double mean = 0;
      for (int j = 0; j < 8; ++j) mean += std::pow(x.view.row(i)[h * 8 + j], 2) / 8;
      for (int j = 0; j < 8; ++j) {
        EXPECT_NEAR(out.view.row(i)[h * 8 + j], x.view.row(i)[h * 8 + j] / std::sqrt(mean + 1e-6) * weight.values[j],
                    1e-5);
      }
    }
  }
}

TEST(Experts, FusedAndSplitEqualTheFormula) {
  Context c(2);
  const std::int64_t rows = 9, hidden = 12, width = 20, count = 5, used = 2;
  Data m(rows, hidden, 10), logits(rows, count, 11), gate_up(count * 2 * width, hidden, 12),
      down(count * hidden, width, 13);
  const std::vector<float> scale{1.0f, 0.5f, 2.0f, -1.0f, 0.25f};
  Routing routing;
  route(routing, logits.view, used, scale);
  ExpertWeights fused;
  fused.count = count;
  fused.gate_up = gate_up.weight();
  fused.down = down.weight();
  ExpertBuffers buffers;
  Data out(rows, hidden, 0);
  experts(c, out.view, m.view, routing, fused, buffers);

  for (std::int64_t i = 0; i < rows; ++i) {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return logits.view.row(i)[a] > logits.view.row(i)[b]; });
    double total = 0;
    for (int j = 0; j < used; ++j) total += std::exp(double{logits.view.row(i)[order[j]]});
    std::vector<double> expected(hidden, 0.0);
    for (int j = 0; j < used; ++j) {
      const int e = order[j];
      const double weight = std::exp(double{logits.view.row(i)[e]}) / total * scale[e];
      std::vector<double> inner(width);
      for (std::int64_t w = 0; w < width; ++w) {
        double g = 0, u = 0;
        for (std::int64_t d = 0; d < hidden; ++d) {
          g += double{gate_up.view.row(e * 2 * width + w)[d]} * m.view.row(i)[d];
          u += double{gate_up.view.row(e * 2 * width + width + w)[d]} * m.view.row(i)[d];
        }
        inner[w] = gelu(g) * u;
      }
      for (std::int64_t d = 0; d < hidden; ++d) {
        for (std::int64_t w = 0; w < width; ++w) expected[d] += weight * down.view.row(e * hidden + d)[w] * inner[w];
      }
    }
    for (std::int64_t d = 0; d < hidden; ++d)
      EXPECT_NEAR(out.view.row(i)[d], expected[d], 1e-4 * (1 + std::abs(expected[d])));
  }

  Data gate(count * width, hidden, 0), up(count * width, hidden, 0), split_out(rows, hidden, 0);
  for (std::int64_t e = 0; e < count; ++e) {
    std::copy_n(gate_up.view.row(e * 2 * width), width * hidden, gate.view.row(e * width));
    std::copy_n(gate_up.view.row(e * 2 * width + width), width * hidden, up.view.row(e * width));
  }
  ExpertWeights split;
  split.count = count;
  split.gate = gate.weight();
  split.up = up.weight();
  split.down = down.weight();
  experts(c, split_out.view, m.view, routing, split, buffers);
  EXPECT_EQ(out.values, split_out.values);
}

class Head : public testing::TestWithParam<std::int64_t> {};

TEST_P(Head, EqualsTheFormula) {
  const std::int64_t vocabulary = GetParam(), rows = 6, width = 16;
  const float cap = 30.0f, temperature = 0.6f;
  Data hidden(rows, width, 14), table(vocabulary, width, 15, 2.0f), soft(rows, width, 0), soft8(rows, width, 0);
  std::vector<RowDraw> draws;
  for (std::uint64_t i = 0; i < rows; ++i) draws.push_back({temperature, 42, 7, i});
  std::vector<RowPrediction> out(rows), out8(rows);
  Context c(1), c8(8);
  HeadBuffers buffers;
  head_predict(c, out, soft.view, hidden.view, table.weight(), cap, draws, {}, buffers);
  head_predict(c8, out8, soft8.view, hidden.view, table.weight(), cap, draws, {}, buffers);
  EXPECT_EQ(soft.values, soft8.values);
  for (std::int64_t i = 0; i < rows; ++i) {
    EXPECT_EQ(out[i].sample, out8[i].sample);
    std::vector<double> y(vocabulary);
    double largest = -1e30, sum = 0, entropy = 0;
    std::int64_t argmax = 0;
    for (std::int64_t t = 0; t < vocabulary; ++t) {
      double z = 0;
      for (std::int64_t d = 0; d < width; ++d) z += double{hidden.view.row(i)[d]} * table.view.row(t)[d];
      y[t] = cap * std::tanh(z / cap) / temperature;
      if (y[t] > largest) {
        largest = y[t];
        argmax = t;
      }
    }
    for (const double value : y) sum += std::exp(value - largest);
    std::vector<double> expected(width, 0.0);
    for (std::int64_t t = 0; t < vocabulary; ++t) {
      const double p = std::exp(y[t] - largest) / sum;
      entropy -= p * std::log(p);
      for (std::int64_t d = 0; d < width; ++d) expected[d] += p * table.view.row(t)[d];
    }
    EXPECT_EQ(out[i].argmax, argmax);
    EXPECT_NEAR(out[i].entropy, entropy, 1e-4);
    EXPECT_NEAR(out[i].confidence, 1 / sum, 1e-4);
    for (std::int64_t d = 0; d < width; ++d) EXPECT_NEAR(soft.view.row(i)[d], expected[d], 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(VocabularySizes, Head, testing::Values(1, 255, 256, 257, 1500));

// Against f32 with operands that bfloat16 holds exactly.
TEST(HeadBf16, EqualsF32OnExactOperands) {
  const std::int64_t vocabulary = 700, rows = 21, width = 64;
  const RoundedData hidden(rows, width, 51), table(vocabulary, width, 52, 0.5f);
  const std::vector<std::uint16_t> words = table.words();
  const WeightView weight{reinterpret_cast<const std::byte*>(words.data()), vocabulary, width, DType::bf16};
  Data soft(rows, width, 0), soft_f32(rows, width, 0);
  std::vector<RowDraw> draws;
  for (std::uint64_t i = 0; i < rows; ++i) draws.push_back({0.6f, 42, 7, i});
  std::vector<RowPrediction> out(rows), out_f32(rows);
  Context c(2, Precision::bf16), c_f32(2);
  HeadBuffers buffers;
  head_predict(c, out, soft.view, hidden.view, weight, 30.0f, draws, {}, buffers);
  head_predict(c_f32, out_f32, soft_f32.view, hidden.view, weight, 30.0f, draws, {}, buffers);
  for (std::int64_t i = 0; i < rows; ++i) {
    EXPECT_EQ(out[i].argmax, out_f32[i].argmax);
    EXPECT_EQ(out[i].sample, out_f32[i].sample);
    EXPECT_NEAR(out[i].entropy, out_f32[i].entropy, 1e-3);
    for (std::int64_t d = 0; d < width; ++d) EXPECT_NEAR(soft.view.row(i)[d], soft_f32.view.row(i)[d], 1e-3);
  }
}

// Filters against the definition: sort, cut, renormalise.
TEST(HeadFilter, EqualsTheFormula) {
  const std::int64_t vocabulary = 700, rows = 11, width = 8;
  Data hidden(rows, width, 20), table(vocabulary, width, 21), soft(rows, width, 0);
  std::vector<RowDraw> draws;
  for (std::uint64_t i = 0; i < rows; ++i) draws.push_back({0.7f, 3, 4, i});
  Context c(2);
  HeadBuffers buffers;
  for (const TokenFilter& filter : {TokenFilter{.top_k = 5}, {.top_p = 0.6f}, {.min_p = 0.05f}, {20, 0.8f, 0.1f}}) {
    std::vector<RowPrediction> out(rows);
    head_predict(c, out, soft.view, hidden.view, table.weight(), 30.0f, draws, filter, buffers);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::vector<std::pair<double, std::int64_t>> ranked;
      for (std::int64_t t = 0; t < vocabulary; ++t) {
        double z = 0;
        for (std::int64_t d = 0; d < width; ++d) z += double{hidden.view.row(i)[d]} * table.view.row(t)[d];
        ranked.push_back({30 * std::tanh(z / 30) / 0.7f, t});
      }
      std::sort(ranked.rbegin(), ranked.rend());
      if (filter.top_k > 0) ranked.resize(static_cast<std::size_t>(filter.top_k));
      const auto mass = [&](std::size_t count) {
        double sum = 0;
        for (std::size_t j = 0; j < count; ++j) sum += std::exp(ranked[j].first - ranked[0].first);
        return sum;
      };
      std::size_t kept = 1;
      const double whole = mass(ranked.size());
      while (kept < ranked.size() && mass(kept) < filter.top_p * whole) ++kept;
      while (kept > 1 && std::exp(ranked[kept - 1].first - ranked[0].first) < filter.min_p) --kept;
      ranked.resize(kept);
      double entropy = 0;
      std::vector<double> expected(width, 0.0);
      bool drawn = false;
      for (const auto& [y, t] : ranked) {
        const double p = std::exp(y - ranked[0].first) / mass(kept);
        entropy -= p * std::log(p);
        drawn = drawn || t == out[i].sample;
        for (std::int64_t d = 0; d < width; ++d) expected[d] += p * table.view.row(t)[d];
      }
      EXPECT_TRUE(drawn);
      EXPECT_EQ(out[i].argmax, ranked[0].second);
      EXPECT_NEAR(out[i].entropy, entropy, 1e-4);
      for (std::int64_t d = 0; d < width; ++d) EXPECT_NEAR(soft.view.row(i)[d], expected[d], 1e-4);
    }
  }
}

// The streamed draw is an exact categorical draw: chi-square over many seeds, with a vocabulary of several tiles.
TEST(HeadSample, FollowsTheDistribution) {
  const std::int64_t vocabulary = 600, width = 4, draws_count = 20000;
  Data row(1, width, 16), table(vocabulary, width, 17, 0.8f);
  std::vector<double> probability(vocabulary);
  double sum = 0;
  for (std::int64_t t = 0; t < vocabulary; ++t) {
    double z = 0;
    for (std::int64_t d = 0; d < width; ++d) z += double{row.values[d]} * table.view.row(t)[d];
    sum += probability[t] = std::exp(z);
  }
  Data hidden(draws_count, width, 0);
  std::vector<RowDraw> draws;
  for (std::int64_t i = 0; i < draws_count; ++i) {
    std::copy_n(row.values.begin(), width, hidden.view.row(i));
    draws.push_back({1.0f, 5, 9, static_cast<std::uint64_t>(i)});
  }
  std::vector<RowPrediction> out(draws_count);
  Context c(2);
  HeadBuffers buffers;
  head_predict(c, out, {}, hidden.view, table.weight(), 0.0f, draws, {}, buffers);
  std::vector<double> counts(vocabulary, 0.0);
  for (const RowPrediction& prediction : out) ++counts[prediction.sample];
  double chi_square = 0;
  for (std::int64_t t = 0; t < vocabulary; ++t) {
    const double expected = probability[t] / sum * draws_count;
    chi_square += (counts[t] - expected) * (counts[t] - expected) / expected;
  }
  // 599 degrees of freedom: mean 599, standard deviation 34.6.
  EXPECT_LT(chi_square, 599 + 5 * 34.6);
  EXPECT_GT(chi_square, 599 - 5 * 34.6);
}

}  // namespace
}  // namespace dgemma
