// Peak memory of the ops that must not build their natural matrix: the head no [rows, vocabulary], attention no [rows,
// keys].
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "ops/attention.h"
#include "ops/head.h"

namespace dgemma {
namespace {

// AddressSanitizer keeps freed memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMeasurable = false;
#else
constexpr bool kMeasurable = true;
#endif

// kB from /proc/self/status: "VmHWM" the peak resident size, "VmRSS" the present one.
std::int64_t status_kb(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return -1;
  char line[256];
  std::int64_t value = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) std::sscanf(line + std::strlen(key) + 1, "%ld", &value);
  }
  std::fclose(file);
  return value;
}

// Megabytes by which `work` raises the peak above what is resident now.
template <typename Work>
std::int64_t peak_growth_mb(const Work& work) {
  std::FILE* file = std::fopen("/proc/self/clear_refs", "w");  // 5: the peak starts anew from the present size
  EXPECT_NE(file, nullptr);
  std::fputs("5", file);
  std::fclose(file);
  const std::int64_t before = status_kb("VmRSS");
  work();
  return (status_kb("VmHWM") - before) / 1024;
}

TEST(Memory, HeadDoesNotBuildCanvasTimesVocabulary) {
  if (!kMeasurable) GTEST_SKIP() << "peak memory cannot be measured under AddressSanitizer";
  const std::int64_t rows = 256, vocabulary = 262144, width = 16;  // the matrix would be 256 MB
  std::vector<float> table(static_cast<std::size_t>(vocabulary * width), 0.01f), hidden(rows * width, 1.0f),
      soft(rows * width);
  std::vector<RowPrediction> out(rows);
  const std::vector<RowDraw> draws(rows);
  Context c(2);
  HeadBuffers buffers;
  const WeightView weight{reinterpret_cast<const std::byte*>(table.data()), vocabulary, width, DType::f32};
  const View u{soft.data(), rows, width, width}, x{hidden.data(), rows, width, width};
  EXPECT_LT(peak_growth_mb([&] { head_predict(c, out, u, x, weight, 30.0f, draws, {}, buffers); }), 32);
  // A filter needs the logits of 8 rows; 64 rows at once would show.
  const std::span<RowPrediction> some = std::span(out).first(64);
  EXPECT_LT(peak_growth_mb([&] {
              head_predict(c, some, u.slice(0, 64), x.slice(0, 64), weight, 30.0f, std::span(draws).first(64),
                           {.top_p = 0.9f}, buffers);
            }),
            48);
}

TEST(Memory, AttentionDoesNotBuildRowsTimesKeys) {
  if (!kMeasurable) GTEST_SKIP() << "peak memory cannot be measured under AddressSanitizer";
  const std::int64_t rows = 16384, width = 32;  // the matrix of one head would be 1 GB
  std::vector<float> q(rows * width, 0.1f), k(rows * width, 0.1f), v(rows * width, 1.0f), out(rows * width);
  std::vector<KeyRange> ranges;
  for (std::int64_t i = 0; i < rows; ++i) ranges.push_back({std::max<std::int64_t>(0, i - 1023), i + 1});
  const std::vector<KeyPiece> pieces{{{k.data(), rows, width, width}, {v.data(), rows, width, width}}};
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Context c(2, precision);
    const std::int64_t growth = peak_growth_mb([&] {
      attention(c, {out.data(), rows, width, width}, {q.data(), rows, width, width}, pieces, 0, ranges, width, 1.0f);
    });
    EXPECT_LT(growth, 32);
    EXPECT_NEAR(out[5], 1.0f, precision == Precision::f32 ? 1e-5f : 0x1p-9f);
  }
}

}  // namespace
}  // namespace dgemma
