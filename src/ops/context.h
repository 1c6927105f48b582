// What every op needs besides its operands: threads, kernels and scratch memory. Knows no model and no session.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "kernels/table.h"
#include "parallel/thread_pool.h"

namespace dgemma {

// What activations are rounded to where they meet stored weights; sums and everything else are f32.
enum class Precision {
  f32,   // not rounded
  int8,  // 8 bits in blocks of 32 with block formats (kernels/int8.h); not rounded with float formats
};

class Context {
 public:
  // Throws bad_input when DGEMMA_ISA names a table that this CPU cannot run.
  // full_soft_embedding: the soft embedding also adds probabilities too small to matter (ops/head.cc), to measure them.
  explicit Context(int threads, Precision precision = Precision::f32, bool full_soft_embedding = false)
      : pool_(threads),
        kernels_(kernel_table()),
        precision_(precision),
        full_soft_embedding_(full_soft_embedding),
        scratch_(pool_.threads()) {
    if (kernels_ == nullptr)
      bad_input("DGEMMA_ISA: this CPU cannot run that kernel table; unset it, or set it to scalar");
  }

  ThreadPool& pool() { return pool_; }
  const KernelTable& kernels() const { return *kernels_; }
  Precision precision() const { return precision_; }

  // `count` floats that belong to `thread` until its next call.
  float* scratch(int thread, std::int64_t count) {
    std::vector<float>& buffer = scratch_[static_cast<std::size_t>(thread)];
    if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
    return buffer.data();
  }

  bool full_soft_embedding() const { return full_soft_embedding_; }

  // Room for the 8-bit form of `count` activations, until the next call.
  std::int8_t* activation_codes(std::int64_t count) {
    if (codes_.size() < static_cast<std::size_t>(count)) codes_.resize(static_cast<std::size_t>(count));
    return codes_.data();
  }
  ActivationBlock* activation_blocks(std::int64_t count) {
    if (blocks_.size() < static_cast<std::size_t>(count)) blocks_.resize(static_cast<std::size_t>(count));
    return blocks_.data();
  }

 private:
  ThreadPool pool_;
  const KernelTable* kernels_;
  Precision precision_;
  bool full_soft_embedding_;
  std::vector<std::int8_t> codes_;
  std::vector<ActivationBlock> blocks_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace dgemma
