// Threads and the one primitive on them. Knows nothing of tensors.
#pragma once

#include <cstdint>
#include <memory>

namespace dgemma {

class ThreadPool {
 public:
  // `threads` counts the calling thread; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end, thread) over 0..n-1 in chunks of `grain` (the last one may be short). Chunks depend on n and
  // grain only, so what a chunk computes cannot depend on the number of threads. body must not throw. Not reentrant.
  template <typename Body>
  void parallel_for(std::int64_t n, std::int64_t grain, const Body& body) {
    run(
        n, grain,
        [](const void* context, std::int64_t begin, std::int64_t end, int thread) {
          (*static_cast<const Body*>(context))(begin, end, thread);
        },
        &body);
  }

 private:
  using Function = void (*)(const void* context, std::int64_t begin, std::int64_t end, int thread);
  struct Shared;

  void run(std::int64_t n, std::int64_t grain, Function function, const void* context);

  int threads_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace dgemma
