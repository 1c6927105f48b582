// Every kernel of every table that this CPU can run, against double precision.
#include "kernels/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace dgemma {
namespace {

std::vector<float> gaussian(std::size_t n, unsigned seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(n);
  for (float& value : out) value = normal(generator);
  return out;
}

class Kernels : public testing::TestWithParam<int> {
 protected:
  const KernelTable& table() const {
    int count = 0;
    return *runnable_kernel_tables(&count)[GetParam()];
  }
};

int table_count() {
  int count = 0;
  runnable_kernel_tables(&count);
  return count;
}

TEST_P(Kernels, GemmNtAgainstDouble) {
  for (const auto [m, n, k] : {std::array{1, 1, 1}, {3, 4, 16}, {7, 13, 37}, {16, 9, 100}, {5, 31, 257}}) {
    const auto a = gaussian(m * (k + 3), 1), b = gaussian(n * (k + 2), 2);
    std::vector<float> c(m * (n + 1), -1);
    table().gemm_nt(a.data(), k + 3, b.data(), k + 2, c.data(), n + 1, m, n, k);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0, magnitude = 0;
        for (int p = 0; p < k; ++p) {
          const double product = double{a[i * (k + 3) + p]} * b[j * (k + 2) + p];
          sum += product;
          magnitude += std::abs(product);
        }
        EXPECT_NEAR(c[i * (n + 1) + j], sum, 1e-6 * magnitude);
      }
      EXPECT_EQ(c[i * (n + 1) + n], -1) << "wrote past the tile";
    }
  }
}

TEST_P(Kernels, GemmNnAddAgainstDouble) {
  for (const auto [m, n, k] : {std::array{1, 1, 1}, {4, 16, 8}, {7, 37, 13}, {6, 65, 40}}) {
    const auto a = gaussian(m * k, 3), b = gaussian(k * n, 4), start = gaussian(m * n, 5);
    std::vector<float> c = start;
    table().gemm_nn_add(a.data(), k, b.data(), n, c.data(), n, m, n, k);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = start[i * n + j], magnitude = std::abs(sum);
        for (int p = 0; p < k; ++p) {
          sum += double{a[i * k + p]} * b[p * n + j];
          magnitude += std::abs(double{a[i * k + p]} * b[p * n + j]);
        }
        EXPECT_NEAR(c[i * n + j], sum, 1e-6 * magnitude);
      }
    }
  }
}

// A row's result must not depend on the rows beside it: this is what makes batching invisible.
TEST_P(Kernels, GemmBitsDoNotDependOnTheTile) {
  const int m = 11, n = 23, k = 77;
  const auto a = gaussian(m * k, 6), b = gaussian(n * k, 7);
  std::vector<float> whole(m * n), single(n);
  table().gemm_nt(a.data(), k, b.data(), k, whole.data(), n, m, n, k);
  for (int i = 0; i < m; ++i) {
    table().gemm_nt(a.data() + i * k, k, b.data(), k, single.data(), n, 1, n, k);
    for (int j = 0; j < n; ++j) EXPECT_EQ(single[j], whole[i * n + j]);
  }
}

TEST_P(Kernels, RowFunctionsAgainstDouble) {
  for (const int n : {1, 7, 16, 37, 256}) {
    const auto x = gaussian(n, 8, 3.0f), up = gaussian(n, 9);
    double squares = 0;
    float largest = x[0];
    for (const float value : x) {
      squares += double{value} * value;
      largest = std::max(largest, value);
    }
    EXPECT_NEAR(table().sum_squares(x.data(), n), squares, 1e-6 * squares);
    EXPECT_EQ(table().maximum(x.data(), n), largest);

    std::vector<float> y(n);
    table().geglu(y.data(), x.data(), up.data(), n);
    for (int i = 0; i < n; ++i) {
      const double g = x[i];
      const double expected = 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * up[i];
      EXPECT_NEAR(y[i], expected, 1e-6 * std::max(1.0, std::abs(g * up[i])));
    }

    y = x;
    const float sum = table().exp_sum(y.data(), largest, n);
    double expected_sum = 0;
    for (int i = 0; i < n; ++i) {
      const double expected = std::exp(double{x[i]} - largest);
      EXPECT_NEAR(y[i], expected, 1e-6 * expected);
      expected_sum += expected;
    }
    EXPECT_NEAR(sum, expected_sum, 2e-6 * expected_sum);

    y = x;
    table().soft_cap(y.data(), 30.0f, 0.7f, n);
    for (int i = 0; i < n; ++i) {
      EXPECT_NEAR(y[i], 30 * std::tanh(x[i] / 30.0) / 0.7, 1e-5 * std::max(1.0f, std::abs(x[i])));
    }
  }
}

TEST_P(Kernels, ExpOfFarNegativeIsZeroEnough) {
  float x[3] = {-1e30f, -200.0f, 0.0f};
  EXPECT_NEAR(table().exp_sum(x, 0.0f, 3), 1.0f, 1e-6f);
  EXPECT_LT(x[0], 1e-37f);
}

// (scripts/test-arm reads from the names which tables were chosen.)
INSTANTIATE_TEST_SUITE_P(AllTables, Kernels, testing::Range(0, table_count()), [](const auto& info) {
  int count = 0;
  return std::string(runnable_kernel_tables(&count)[info.param]->name);
});

}  // namespace
}  // namespace dgemma
