// Picks the kernel table once, by CPU or by DGEMMA_ISA.
#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <cstdlib>
#include <cstring>

#include "kernels/table.h"

namespace dgemma {

extern const KernelTable kernels_scalar;
extern const KernelTable kernels_avx2;
extern const KernelTable kernels_avx2_vnni;
extern const KernelTable kernels_avx512;
extern const KernelTable kernels_avx512_vnni;
extern const KernelTable kernels_avx512_bf16;
extern const KernelTable kernels_amx;
extern const KernelTable kernels_neon_dotprod;
extern const KernelTable kernels_neon_i8mm;

namespace {

#if defined(__x86_64__)
// Linux lets a process use tiles when it has asked once, before its threads start.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

struct Runnable {
  const KernelTable* tables[7];
  int count = 0;

  Runnable() {
    tables[count++] = &kernels_scalar;
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (avx2) tables[count++] = &kernels_avx2;
    if (avx2 && __builtin_cpu_supports("avxvnni")) tables[count++] = &kernels_avx2_vnni;
    if (avx512) tables[count++] = &kernels_avx512;
    const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
    if (vnni) tables[count++] = &kernels_avx512_vnni;
    if (vnni && __builtin_cpu_supports("avx512bf16")) tables[count++] = &kernels_avx512_bf16;
    if (vnni && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") && may_use_tiles()) {
      tables[count++] = &kernels_amx;
    }
#elif defined(__aarch64__)
    // A program may not ask the CPU itself here: Linux hands it what it may use.
    const bool dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    if (dotprod) tables[count++] = &kernels_neon_dotprod;
    if (dotprod && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) tables[count++] = &kernels_neon_i8mm;
#endif
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
