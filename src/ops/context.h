// What every op needs besides its operands: threads, kernels and scratch memory. Knows no model and no session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/table.h"
#include "parallel/thread_pool.h"

namespace dgemma {

// What activations are rounded to where they meet stored weights; sums and everything else are f32.
enum class Precision {
  f32,   // not rounded
  bf16,  // bfloat16, and the weights too (kernels/bf16.h); not rounded where weights are stored in f32
  int8,  // 8 bits in blocks of 32 with block formats (kernels/int8.h); not rounded with float formats
};

// The names that users give them.
inline const std::map<std::string, Precision> kPrecisions = {
    {"f32", Precision::f32}, {"bf16", Precision::bf16}, {"int8", Precision::int8}};

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

  // `count` floats, on a cache line, that belong to `thread` until its next call.
  float* scratch(int thread, std::int64_t count) {
    return reinterpret_cast<float*>(scratch_[static_cast<std::size_t>(thread)].at_least(4 * count));
  }

  bool full_soft_embedding() const { return full_soft_embedding_; }

  // Whether attention multiplies in bfloat16: with bf16, and with int8 where the machine is faster at it.
  bool bf16_attention() const {
    return precision_ == Precision::bf16 || (precision_ == Precision::int8 && kernels_->fast_bf16);
  }

  // `bytes`, on a cache line, for all threads together until the next call: rounded activations, packed keys.
  std::byte* workspace(std::int64_t bytes) { return workspace_.at_least(bytes); }

 private:
  // Memory that starts on a cache line and only grows.
  class Buffer {
   public:
    std::byte* at_least(std::int64_t bytes) {
      constexpr std::size_t kLine = 64;
      if (storage_.size() < static_cast<std::size_t>(bytes) + kLine) {
        storage_.resize(static_cast<std::size_t>(bytes) + kLine);
      }
      return storage_.data() + (kLine - reinterpret_cast<std::uintptr_t>(storage_.data()) % kLine) % kLine;
    }

   private:
    std::vector<std::byte> storage_;
  };

  ThreadPool pool_;
  const KernelTable* kernels_;
  Precision precision_;
  bool full_soft_embedding_;
  Buffer workspace_;
  std::vector<Buffer> scratch_;
};

}  // namespace dgemma
