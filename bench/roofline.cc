// The machine's limits: multiply-adds on registers for every kernel table, and read bandwidth of memory and caches.
//   bench_roofline [THREADS]     default: all CPUs; one thread is always measured too
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "kernels/table.h"
#include "limits.h"

namespace {

using dgemma::bench::Rate;

nlohmann::json report(const char* what, const char* table, int threads, const Rate& rate, const char* unit) {
  std::printf("%-16s %-7s %2d thread%s %8.1f %s   (best %8.1f; a thread's CPU second %8.1f)\n", what, table, threads,
              threads == 1 ? " " : "s", rate.per_s * 1e-9, unit, rate.best_per_s * 1e-9, rate.per_cpu_s * 1e-9);
  return {{"what", what},
          {"table", table},
          {"threads", threads},
          {"unit", unit},
          {"median", rate.per_s * 1e-9},
          {"best", rate.best_per_s * 1e-9},
          {"per_cpu_s", rate.per_cpu_s * 1e-9}};
}

}  // namespace

int main(int argc, char** argv) try {
  const int all = argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
  if (argc > 2 || all < 1) {
    std::fprintf(stderr, "usage: bench_roofline [THREADS]\n");
    return 2;
  }
  const double load_before = dgemma::bench::load_average();
  nlohmann::json results = nlohmann::json::array();
  int count = 0;
  const dgemma::KernelTable* const* tables = dgemma::runnable_kernel_tables(&count);
  const char* widest = tables[count - 1]->name;
  dgemma::ThreadPool one(1), many(all);
  for (int i = 0; i < count; ++i) {
    const char* name = tables[i]->name;
    results.push_back(report("f32 limit", name, 1, dgemma::bench::f32_limit(one, name), "GFLOP/s"));
    if (all > 1) results.push_back(report("f32 limit", name, all, dgemma::bench::f32_limit(many, name), "GFLOP/s"));
    results.push_back(report("int8 limit", name, 1, dgemma::bench::int8_limit(one, name), "GOP/s"));
    if (all > 1) results.push_back(report("int8 limit", name, all, dgemma::bench::int8_limit(many, name), "GOP/s"));
    if (!tables[i]->fast_bf16) continue;
    results.push_back(report("bf16 limit", name, 1, dgemma::bench::bf16_limit(one, name), "GFLOP/s"));
    if (all > 1) results.push_back(report("bf16 limit", name, all, dgemma::bench::bf16_limit(many, name), "GFLOP/s"));
  }
  const auto read = [&](dgemma::ThreadPool& pool, const char* what, std::int64_t bytes) {
    results.push_back(report(what, widest, pool.threads(), dgemma::bench::read_limit(pool, widest, bytes), "GB/s"));
  };
  read(one, "read 16 KiB", 16 << 10);
  read(one, "read 256 KiB", 256 << 10);
  read(one, "read 8 MiB", 8 << 20);
  read(one, "read 512 MiB", dgemma::bench::kMemoryBytes);
  if (all > 1) read(many, "read 512 MiB", dgemma::bench::kMemoryBytes);
  dgemma::bench::print_result({{"bench", "roofline"},
                               {"machine", dgemma::bench::machine()},
                               {"load_before", load_before},
                               {"load_after", dgemma::bench::load_average()},
                               {"results", results}});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
