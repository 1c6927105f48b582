#include "ops/elementwise.h"

#include <cmath>

namespace dgemma {
namespace {

constexpr std::int64_t kRowGrain = 8;

template <typename Body>
void for_rows(Context& c, View x, const Body& body) {
  c.pool().parallel_for(x.rows, kRowGrain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

void norm_groups(Context& c, View out, View x, std::int64_t group, const float* weight, float eps) {
  DGEMMA_CHECK(out.rows == x.rows && out.cols == x.cols && group > 0 && x.cols % group == 0);
  for_rows(c, x, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.cols; j += group) {
      const float mean = c.kernels().sum_squares(x.row(i) + j, group) / static_cast<float>(group);
      c.kernels().scale_weight(out.row(i) + j, x.row(i) + j, 1.0f / std::sqrt(mean + eps), weight, group);
    }
  });
}

}  // namespace

void rms_norm(Context& c, View out, View x, std::span<const float> weight, float eps) {
  norm_groups(c, out, x, static_cast<std::int64_t>(weight.size()), weight.data(), eps);
}

void rms_norm_unit(Context& c, View out, View x, std::int64_t group, float eps) {
  norm_groups(c, out, x, group, nullptr, eps);
}

void rope(Context& c, View x, std::span<const std::int32_t> positions, std::span<const float> frequencies) {
  const auto half = static_cast<std::int64_t>(frequencies.size());
  DGEMMA_CHECK(static_cast<std::int64_t>(positions.size()) == x.rows && x.cols % (2 * half) == 0);
  c.pool().parallel_for(x.rows, kRowGrain, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* cosine = c.scratch(thread, 2 * half);
    float* sine = cosine + half;
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < half; ++j) {
        const float angle = static_cast<float>(positions[i]) * frequencies[j];
        cosine[j] = std::cos(angle);
        sine[j] = std::sin(angle);
      }
      for (float* head = x.row(i); head < x.row(i) + x.cols; head += 2 * half) {
        for (std::int64_t j = 0; j < half; ++j) {
          const float first = head[j], second = head[j + half];
          head[j] = first * cosine[j] - second * sine[j];
          head[j + half] = second * cosine[j] + first * sine[j];
        }
      }
    }
  });
}

void geglu(Context& c, View out, View gate, View up) {
  DGEMMA_CHECK(out.rows == gate.rows && out.cols == gate.cols && up.rows == gate.rows && up.cols == gate.cols);
  for_rows(c, out, [&](std::int64_t i) { c.kernels().geglu(out.row(i), gate.row(i), up.row(i), out.cols); });
}

void add(Context& c, View out, View a, View b) {
  DGEMMA_CHECK(out.rows == a.rows && out.cols == a.cols && b.rows == a.rows && b.cols == a.cols);
  for_rows(c, out, [&](std::int64_t i) {
    float* y = out.row(i);
    const float *left = a.row(i), *right = b.row(i);
    for (std::int64_t j = 0; j < out.cols; ++j) y[j] = left[j] + right[j];
  });
}

void scale_rows(Context& c, View x, std::span<const float> scales) {
  DGEMMA_CHECK(static_cast<std::int64_t>(scales.size()) == x.rows);
  for_rows(c, x, [&](std::int64_t i) { c.kernels().multiply(x.row(i), scales[i], x.cols); });
}

}  // namespace dgemma
