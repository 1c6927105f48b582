#include "parallel/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace dgemma {
namespace {

TEST(ThreadPool, EveryIndexOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> hits(round);
      pool.parallel_for(round, 3, [&](std::int64_t begin, std::int64_t end, int thread) {
        ASSERT_LT(thread, threads);
        ASSERT_LE(end - begin, 3);
        for (std::int64_t i = begin; i < end; ++i) hits[i].fetch_add(1);
      });
      for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
    }
  }
}

}  // namespace
}  // namespace dgemma
