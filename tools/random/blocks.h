// Random weights made in their stored format: random codes under scales that give the values a chosen spread. Made so,
// 16.8 GB take seconds; quantising random floats would take an hour.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace dgemma {

// Which numbers: rows of different (seed, stream) are independent.
struct RandomStream {
  std::uint64_t seed = 0, stream = 0;
};

// Fills rows first .. first + rows - 1 of a matrix of `cols` columns, row_bytes(dtype, cols) each, at `out`, with
// values of mean zero and standard deviation `deviation`, none beyond 3.5 deviations. A row depends on its number, the
// stream and nothing else. Scales differ from block to block by a quarter either way. Types: f32, bf16, q8_0, q4_0,
// q5_0, q4_k, q6_k; throws unsupported for others. `cols` is a multiple of the block.
void random_rows(DType dtype, RandomStream random, std::int64_t first, std::int64_t rows, std::int64_t cols,
                 float deviation, void* out);

}  // namespace dgemma
