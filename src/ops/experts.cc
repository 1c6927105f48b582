#include "ops/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/elementwise.h"
#include "ops/linear.h"

namespace dgemma {

void route(Routing& out, View logits, std::int64_t used, std::span<const float> per_expert_scale) {
  const std::int64_t count = logits.cols;
  DGEMMA_CHECK(used >= 1 && used <= count && static_cast<std::int64_t>(per_expert_scale.size()) == count);
  out.used = used;
  out.experts.resize(static_cast<std::size_t>(logits.rows * used));
  out.weights.resize(out.experts.size());
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const float* row = logits.row(i);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + used, order.end(),
                      [&](std::int32_t a, std::int32_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
    // Softmax over all, then renormalised over the chosen: the common denominator cancels.
    float sum = 0;
    for (std::int64_t j = 0; j < used; ++j) {
      const float weight = std::exp(row[order[j]] - row[order[0]]);
      out.weights[i * used + j] = weight;
      sum += weight;
    }
    for (std::int64_t j = 0; j < used; ++j) {
      out.experts[i * used + j] = order[j];
      out.weights[i * used + j] = out.weights[i * used + j] / sum * per_expert_scale[order[j]];
    }
  }
}

void experts(Context& c, View out, View m, const Routing& routing, const ExpertWeights& weights,
             ExpertBuffers& buffers) {
  const std::int64_t used = routing.used, slots = m.rows * used, hidden = m.cols;
  const std::int64_t width = weights.down.cols;
  DGEMMA_CHECK(static_cast<std::int64_t>(routing.experts.size()) == slots && out.rows == m.rows && out.cols == hidden);

  // Counting sort of (row, rank) by expert: first[e] .. first[e+1]-1 are the slots of expert e.
  std::vector<std::int64_t> first(static_cast<std::size_t>(weights.count + 1), 0);
  for (const std::int32_t expert : routing.experts) ++first[expert + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  buffers.slots.resize(static_cast<std::size_t>(slots));
  buffers.rows.resize(static_cast<std::size_t>(slots));
  std::vector<std::int64_t> next(first.begin(), first.end() - 1);
  for (std::int64_t i = 0; i < slots; ++i) {
    const std::int64_t slot = next[routing.experts[i]]++;
    buffers.slots[i] = static_cast<std::int32_t>(slot);
    buffers.rows[slot] = static_cast<std::int32_t>(i / used);
  }

  const View gate_up = buffers.gate_up.reshape(slots, 2 * width);
  const View expert_out = buffers.out.reshape(slots, hidden);
  const View gate{gate_up.data, slots, width, gate_up.stride};
  const View up{gate_up.data + width, slots, width, gate_up.stride};
  std::vector<LinearGroup> groups;
  // out = m weight^T for each expert's rows of m and its `height` rows of the stored matrix.
  const auto of_rows = [&](View result, WeightView weight, std::int64_t height) {
    groups.clear();
    for (std::int64_t e = 0; e < weights.count; ++e) {
      const std::int64_t begin = first[e], count = first[e + 1] - first[e];
      if (count == 0) continue;
      groups.push_back(
          {result.slice(begin, count), m, weight.slice(e * height, height),
           std::span(buffers.rows).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count))});
    }
    linear_groups(c, groups);
  };
  if (weights.gate_up) {
    of_rows(gate_up, weights.gate_up, 2 * width);
  } else {
    of_rows(gate, weights.gate, width);
    of_rows(up, weights.up, width);
  }
  geglu(c, gate, gate, up);
  groups.clear();
  for (std::int64_t e = 0; e < weights.count; ++e) {
    const std::int64_t begin = first[e], count = first[e + 1] - first[e];
    if (count == 0) continue;
    groups.push_back(
        {expert_out.slice(begin, count), gate.slice(begin, count), weights.down.slice(e * hidden, hidden)});
  }
  linear_groups(c, groups);

  c.pool().parallel_for(m.rows, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* y = out.row(i);
      std::fill(y, y + hidden, 0.0f);
      for (std::int64_t rank = 0; rank < used; ++rank) {
        const float weight = routing.weights[i * used + rank];
        const float* value = expert_out.row(buffers.slots[i * used + rank]);
        for (std::int64_t j = 0; j < hidden; ++j) y[j] += weight * value[j];
      }
    }
  });
}

}  // namespace dgemma
