#include "parallel/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace dgemma {

struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable work_ready;
  std::condition_variable work_done;
  std::atomic<std::uint64_t> generation{0};  // written under the mutex; read without it while spinning
  std::atomic<int> busy{0};
  std::atomic<std::int64_t> next{0};
  std::int64_t n = 0;
  std::int64_t grain = 1;
  Function function = nullptr;
  const void* context = nullptr;
  bool stop = false;
  std::vector<std::thread> workers;

  void take_chunks(int thread) {
    for (;;) {
      const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= n) return;
      function(context, begin, std::min(begin + grain, n), thread);
    }
  }

  void work(int thread) {
    std::uint64_t seen = 0;
    for (;;) {
      // Spin briefly, since ops follow each other within microseconds; then sleep, since two busy-waiting threads on
      // two shared cores are slower than one.
      for (int spin = 0; spin < 2000 && generation.load(std::memory_order_acquire) == seen; ++spin) {
        std::this_thread::yield();
      }
      {
        std::unique_lock lock(mutex);
        work_ready.wait(lock, [&] { return stop || generation.load(std::memory_order_relaxed) != seen; });
        if (stop) return;
        seen = generation.load(std::memory_order_relaxed);
      }
      take_chunks(thread);
      if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard lock(mutex);
        work_done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)), shared_(std::make_unique<Shared>()) {
  for (int thread = 1; thread < threads_; ++thread) {
    shared_->workers.emplace_back([shared = shared_.get(), thread] { shared->work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->generation.fetch_add(1, std::memory_order_release);
  }
  shared_->work_ready.notify_all();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::run(std::int64_t n, std::int64_t grain, Function function, const void* context) {
  if (n <= 0) return;
  if (threads_ == 1 || n <= grain) {
    for (std::int64_t begin = 0; begin < n; begin += grain) function(context, begin, std::min(begin + grain, n), 0);
    return;
  }
  {
    std::lock_guard lock(shared_->mutex);
    shared_->n = n;
    shared_->grain = grain;
    shared_->function = function;
    shared_->context = context;
    shared_->next.store(0, std::memory_order_relaxed);
    shared_->busy.store(threads_ - 1, std::memory_order_relaxed);
    shared_->generation.fetch_add(1, std::memory_order_release);
  }
  shared_->work_ready.notify_all();
  shared_->take_chunks(0);
  std::unique_lock lock(shared_->mutex);
  shared_->work_done.wait(lock, [&] { return shared_->busy.load(std::memory_order_acquire) == 0; });
}

}  // namespace dgemma
