// Picks the kernel table once, by CPU or by DGEMMA_ISA.
#include <cstdlib>
#include <cstring>

#include "kernels/table.h"

namespace dgemma {

extern const KernelTable kernels_scalar;
extern const KernelTable kernels_avx2;
extern const KernelTable kernels_avx2_vnni;
extern const KernelTable kernels_avx512;
extern const KernelTable kernels_avx512_vnni;

namespace {

struct Runnable {
  const KernelTable* tables[5];
  int count = 0;

  Runnable() {
    tables[count++] = &kernels_scalar;
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (avx2) tables[count++] = &kernels_avx2;
    if (avx2 && __builtin_cpu_supports("avxvnni")) tables[count++] = &kernels_avx2_vnni;
    if (avx512) tables[count++] = &kernels_avx512;
    if (avx512 && __builtin_cpu_supports("avx512vnni")) tables[count++] = &kernels_avx512_vnni;
  }
};

const Runnable& runnable() {
  static const Runnable instance;
  return instance;
}

}  // namespace

const KernelTable* const* runnable_kernel_tables(int* count) {
  *count = runnable().count;
  return runnable().tables;
}

const KernelTable* kernel_table() {
  const char* wanted = std::getenv("DGEMMA_ISA");
  if (wanted == nullptr) return runnable().tables[runnable().count - 1];
  for (int i = 0; i < runnable().count; ++i) {
    if (std::strcmp(runnable().tables[i]->name, wanted) == 0) return runnable().tables[i];
  }
  return nullptr;
}

}  // namespace dgemma
