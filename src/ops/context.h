// What every op needs besides its operands: threads, kernels and scratch memory. Knows no model and no session.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "kernels/table.h"
#include "parallel/thread_pool.h"

namespace dgemma {

class Context {
 public:
  // Throws bad_input when DGEMMA_ISA names a table that this CPU cannot run.
  explicit Context(int threads) : pool_(threads), kernels_(kernel_table()), scratch_(pool_.threads()) {
    if (kernels_ == nullptr)
      bad_input("DGEMMA_ISA: this CPU cannot run that kernel table; unset it, or set it to scalar");
  }

  ThreadPool& pool() { return pool_; }
  const KernelTable& kernels() const { return *kernels_; }

  // `count` floats that belong to `thread` until its next call.
  float* scratch(int thread, std::int64_t count) {
    std::vector<float>& buffer = scratch_[static_cast<std::size_t>(thread)];
    if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
    return buffer.data();
  }

 private:
  ThreadPool pool_;
  const KernelTable* kernels_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace dgemma
