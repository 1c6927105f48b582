// What the machine can do, measured: the bounds that the other benchmarks state their figures against. Also the clock,
// the median and the result line that all of them share. Knows no op and no model.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "parallel/thread_pool.h"

namespace dgemma::bench {

// Seconds since its construction: on the wall, and spent by all threads of this process. On a machine shared with other
// programs the two drift apart; both are reported.
class Stopwatch {
 public:
  Stopwatch();
  double wall_s() const;
  double cpu_s() const;

 private:
  double wall_, cpu_;
};

// Of at least one value; the mean of the two middle ones when their number is even.
double median(std::vector<double> values);

// Work a second: medians over samples.
struct Rate {
  double per_s = 0;      // by the wall, all threads together
  double per_cpu_s = 0;  // by the CPU seconds of the threads: one thread's rate, other programs' share left out
  double best_per_s = 0;
};

// Flops a second (a fused multiply-add is two) of multiply-adds whose operands all stay in registers, in the
// instruction set of a kernel table ("scalar" is SSE2, which every x86-64 has: packed multiplies and adds). bad_input
// for another name.
Rate f32_limit(ThreadPool& pool, std::string_view table, int samples = 9);

// Operations a second (a multiply-add is two) of byte products, as f32_limit: with the dot-product instruction where
// the table has one, else with the table's pair products.
Rate int8_limit(ThreadPool& pool, std::string_view table, int samples = 9);

// Flops a second (a multiply-add is two) of bfloat16 products with f32 sums: with the table's instruction (AMX tiles,
// pairs of AVX-512 BF16), else the limit of f32, since they are widened.
Rate bf16_limit(ThreadPool& pool, std::string_view table, int samples = 9);

// Bytes a second of summing a buffer of `bytes` again and again, with the table's loads. Far above the last cache it is
// the memory's read bandwidth; with one thread and a small buffer, that cache's.
Rate read_limit(ThreadPool& pool, std::string_view table, std::int64_t bytes, int samples = 9);

constexpr std::int64_t kMemoryBytes = std::int64_t{512} << 20;  // a buffer for read_limit that no cache holds

// CPU model, CPUs, kernel tables, compiler; the load average of the last minute is load_average().
nlohmann::json machine();
double load_average();

// The last line of every benchmark: RESULT and one JSON object.
void print_result(const nlohmann::json& result);

}  // namespace dgemma::bench
