#include "limits.h"

#include <immintrin.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/error.h"
#include "kernels/table.h"

namespace dgemma::bench {
namespace {

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Each function runs `rounds` rounds of kChains independent chains acc = acc * factor + term; the chains cover latency
// times issue width, and with the two operands they fit the registers. acc tends to 2: no denormals, no overflow.
// Returns a number that depends on every chain. (Every loop over the chains is unrolled by force: one that is not keeps
// the array in memory, and the others then store into it.)
constexpr float kFactor = 0.5f, kTerm = 1.0f;

constexpr int kSse2Chains = 12;
float chains_sse2(std::int64_t rounds) {
  __m128 acc[kSse2Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kSse2Chains; ++i) acc[i] = _mm_set1_ps(static_cast<float>(i));
  const __m128 factor = _mm_set1_ps(kFactor), term = _mm_set1_ps(kTerm);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSse2Chains; ++i) acc[i] = _mm_add_ps(_mm_mul_ps(acc[i], factor), term);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kSse2Chains; ++i) acc[0] = _mm_add_ps(acc[0], acc[i]);
  return _mm_cvtss_f32(acc[0]);
}

constexpr int kAvx2Chains = 12;
__attribute__((target("avx2,fma"))) float chains_avx2(std::int64_t rounds) {
  __m256 acc[kAvx2Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx2Chains; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(kFactor), term = _mm256_set1_ps(kTerm);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx2Chains; ++i) acc[i] = _mm256_fmadd_ps(acc[i], factor, term);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx2Chains; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  return _mm256_cvtss_f32(acc[0]);
}

constexpr int kAvx512Chains = 12;
__attribute__((target("avx512f"))) float chains_avx512(std::int64_t rounds) {
  __m512 acc[kAvx512Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(kFactor), term = _mm512_set1_ps(kTerm);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_fmadd_ps(acc[i], factor, term);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx512Chains; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}

// Byte products into integer sums, in the table's way (kernels/simd/dot_*.h); the sums wrap, which costs nothing.
std::int32_t bytes_sse2(std::int64_t rounds) {
  __m128i acc[kSse2Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kSse2Chains; ++i) acc[i] = _mm_set1_epi32(i);
  __m128i x = _mm_set1_epi16(3);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSse2Chains; ++i) acc[i] = _mm_add_epi32(acc[i], _mm_madd_epi16(acc[i], x));
  }
#pragma GCC unroll 12
  for (int i = 1; i < kSse2Chains; ++i) acc[0] = _mm_add_epi32(acc[0], acc[i]);
  return _mm_cvtsi128_si32(acc[0]);
}

__attribute__((target("avx2"))) std::int32_t bytes_avx2(std::int64_t rounds) {
  __m256i acc[kAvx2Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx2Chains; ++i) acc[i] = _mm256_set1_epi32(i);
  const __m256i x = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx2Chains; ++i) {
      acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(_mm256_maddubs_epi16(acc[i], x), ones));
    }
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx2Chains; ++i) acc[0] = _mm256_add_epi32(acc[0], acc[i]);
  return _mm256_cvtsi256_si32(acc[0]);
}

__attribute__((target("avx2,avxvnni"))) std::int32_t bytes_avx_vnni(std::int64_t rounds) {
  __m256i acc[kAvx2Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx2Chains; ++i) acc[i] = _mm256_set1_epi32(i);
  const __m256i w = _mm256_set1_epi8(5), x = _mm256_set1_epi8(3);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx2Chains; ++i) acc[i] = _mm256_dpbusd_avx_epi32(acc[i], w, x);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx2Chains; ++i) acc[0] = _mm256_add_epi32(acc[0], acc[i]);
  return _mm256_cvtsi256_si32(acc[0]);
}

__attribute__((target("avx512f,avx512bw"))) std::int32_t bytes_avx512(std::int64_t rounds) {
  __m512i acc[kAvx512Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_set1_epi32(i);
  const __m512i x = _mm512_set1_epi8(3), ones = _mm512_set1_epi16(1);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx512Chains; ++i) {
      acc[i] = _mm512_add_epi32(acc[i], _mm512_madd_epi16(_mm512_maddubs_epi16(acc[i], x), ones));
    }
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx512Chains; ++i) acc[0] = _mm512_add_epi32(acc[0], acc[i]);
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(acc[0]));
}

__attribute__((target("avx512f,avx512vnni"))) std::int32_t bytes_avx512_vnni(std::int64_t rounds) {
  __m512i acc[kAvx512Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_set1_epi32(i);
  const __m512i w = _mm512_set1_epi8(5), x = _mm512_set1_epi8(3);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], w, x);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx512Chains; ++i) acc[0] = _mm512_add_epi32(acc[0], acc[i]);
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(acc[0]));
}

// Pairs of bfloat16 into float sums, in the table's way. Where a table widens them first, its limit is that of f32.
__attribute__((target("avx512f,avx512bf16"))) float pairs_avx512_bf16(std::int64_t rounds) {
  __m512 acc[kAvx512Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx512Chains; ++i) acc[i] = _mm512_dpbf16_ps(acc[i], ones, ones);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kAvx512Chains; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}

// Tiles of 16 x 16 sums and 32 inputs; a round is one product into each of four.
__attribute__((target("amx-tile,amx-bf16"))) float tiles_amx(std::int64_t rounds) {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } const config;
  alignas(64) std::uint32_t ones[256];
  alignas(64) float sums[256];
  for (std::uint32_t& pair : ones) pair = 0x3f803f80u;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  float sum = 0;
  _tile_stored(0, sums, 64);
  sum += sums[17];
  _tile_stored(1, sums, 64);
  sum += sums[17];
  _tile_stored(2, sums, 64);
  sum += sums[17];
  _tile_stored(3, sums, 64);
  sum += sums[17];
  _tile_release();
  return sum;
}
constexpr int kTileFlops = 4 * 2 * 16 * 16 * 32;

// The sum of `count` floats, a multiple of kSumStep; eight loads in flight.
constexpr std::int64_t kSumStep = 128;
float sum_sse2(const float* x, std::int64_t count) {
  __m128 acc[8] = {};
  for (std::int64_t i = 0; i < count; i += 32) {
    for (int j = 0; j < 8; ++j) acc[j] = _mm_add_ps(acc[j], _mm_load_ps(x + i + 4 * j));
  }
  for (int j = 1; j < 8; ++j) acc[0] = _mm_add_ps(acc[0], acc[j]);
  return _mm_cvtss_f32(acc[0]);
}

__attribute__((target("avx2"))) float sum_avx2(const float* x, std::int64_t count) {
  __m256 acc[8];
  for (int j = 0; j < 8; ++j) acc[j] = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < count; i += 64) {
    for (int j = 0; j < 8; ++j) acc[j] = _mm256_add_ps(acc[j], _mm256_load_ps(x + i + 8 * j));
  }
  for (int j = 1; j < 8; ++j) acc[0] = _mm256_add_ps(acc[0], acc[j]);
  return _mm256_cvtss_f32(acc[0]);
}

__attribute__((target("avx512f"))) float sum_avx512(const float* x, std::int64_t count) {
  __m512 acc[8];
  for (int j = 0; j < 8; ++j) acc[j] = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < count; i += 128) {
    for (int j = 0; j < 8; ++j) acc[j] = _mm512_add_ps(acc[j], _mm512_load_ps(x + i + 16 * j));
  }
  for (int j = 1; j < 8; ++j) acc[0] = _mm512_add_ps(acc[0], acc[j]);
  return _mm512_cvtss_f32(acc[0]);
}

struct Probe {
  std::string_view table;
  float (*chains)(std::int64_t rounds);
  int flops_per_round;  // lanes * chains * 2
  std::int32_t (*bytes)(std::int64_t rounds);
  int byte_ops_per_round;  // bytes (SSE2 has products of 16 bits only) * chains * 2
  float (*pairs)(std::int64_t rounds);
  int pair_flops_per_round;
  float (*sum)(const float* x, std::int64_t count);
};
constexpr int kSse2Flops = 4 * kSse2Chains * 2, kAvx2Flops = 8 * kAvx2Chains * 2, kAvx512Flops = 16 * kAvx512Chains * 2;
constexpr Probe kProbes[] = {
    {"scalar", chains_sse2, kSse2Flops, bytes_sse2, 2 * kSse2Flops, chains_sse2, kSse2Flops, sum_sse2},
    {"avx2", chains_avx2, kAvx2Flops, bytes_avx2, 4 * kAvx2Flops, chains_avx2, kAvx2Flops, sum_avx2},
    {"avx2_vnni", chains_avx2, kAvx2Flops, bytes_avx_vnni, 4 * kAvx2Flops, chains_avx2, kAvx2Flops, sum_avx2},
    {"avx512", chains_avx512, kAvx512Flops, bytes_avx512, 4 * kAvx512Flops, chains_avx512, kAvx512Flops, sum_avx512},
    {"avx512_vnni", chains_avx512, kAvx512Flops, bytes_avx512_vnni, 4 * kAvx512Flops, chains_avx512, kAvx512Flops,
     sum_avx512},
    {"avx512_bf16", chains_avx512, kAvx512Flops, bytes_avx512_vnni, 4 * kAvx512Flops, pairs_avx512_bf16,
     2 * kAvx512Flops, sum_avx512},
    {"amx", chains_avx512, kAvx512Flops, bytes_avx512_vnni, 4 * kAvx512Flops, tiles_amx, kTileFlops, sum_avx512},
};

const Probe& probe_for(std::string_view table) {
  for (const Probe& probe : kProbes) {
    if (probe.table == table) return probe;
  }
  bad_input("no roofline probe for the kernel table {}", table);
}

std::atomic<std::int32_t> integer_sink;
std::atomic<float> sink;  // keeps the compiler from dropping the work

// `work` is done by each call of body.
template <typename Body>
Rate sample(int samples, double work, const Body& body) {
  body();  // wakes the threads and the clock frequency
  std::vector<double> wall, cpu;
  for (int i = 0; i < samples; ++i) {
    const Stopwatch watch;
    body();
    wall.push_back(work / watch.wall_s());
    cpu.push_back(work / watch.cpu_s());
  }
  return {median(wall), median(cpu), *std::max_element(wall.begin(), wall.end())};
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string model, family, number;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) model = value;
    if (line.starts_with("cpu family")) family = value;
    if (line.starts_with("model\t")) number = value;
  }
  return model.empty() ? "unknown" : model + " family " + family + " model " + number;
}

}  // namespace

Stopwatch::Stopwatch() : wall_(seconds(CLOCK_MONOTONIC)), cpu_(seconds(CLOCK_PROCESS_CPUTIME_ID)) {}
double Stopwatch::wall_s() const { return seconds(CLOCK_MONOTONIC) - wall_; }
double Stopwatch::cpu_s() const { return seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_; }

double median(std::vector<double> values) {
  DGEMMA_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

Rate f32_limit(ThreadPool& pool, std::string_view table, int samples) {
  const Probe& probe = probe_for(table);
  constexpr std::int64_t kRounds = 200000;          // about a millisecond a chunk
  const std::int64_t chunks = 64 * pool.threads();  // many, so that a thread that is held up is not waited for long
  return sample(samples, static_cast<double>(chunks * kRounds) * probe.flops_per_round, [&] {
    pool.parallel_for(chunks, 1, [&](std::int64_t, std::int64_t, int) { sink = probe.chains(kRounds); });
  });
}

Rate int8_limit(ThreadPool& pool, std::string_view table, int samples) {
  const Probe& probe = probe_for(table);
  constexpr std::int64_t kRounds = 200000;
  const std::int64_t chunks = 64 * pool.threads();
  return sample(samples, static_cast<double>(chunks * kRounds) * probe.byte_ops_per_round, [&] {
    pool.parallel_for(chunks, 1, [&](std::int64_t, std::int64_t, int) { integer_sink = probe.bytes(kRounds); });
  });
}

Rate bf16_limit(ThreadPool& pool, std::string_view table, int samples) {
  const Probe& probe = probe_for(table);
  constexpr std::int64_t kRounds = 50000;
  const std::int64_t chunks = 64 * pool.threads();
  return sample(samples, static_cast<double>(chunks * kRounds) * probe.pair_flops_per_round, [&] {
    pool.parallel_for(chunks, 1, [&](std::int64_t, std::int64_t, int) { sink = probe.pairs(kRounds); });
  });
}

Rate read_limit(ThreadPool& pool, std::string_view table, std::int64_t bytes, int samples) {
  const Probe& probe = probe_for(table);
  const std::int64_t chunk = std::min<std::int64_t>(bytes / 4, 1 << 18) / kSumStep * kSumStep;  // floats
  DGEMMA_CHECK(chunk > 0);
  const std::int64_t chunks = bytes / 4 / chunk;
  std::vector<float> storage(static_cast<std::size_t>(chunks * chunk + 16), 1.0f);  // written: real pages
  const float* buffer = storage.data();
  while (reinterpret_cast<std::uintptr_t>(buffer) % 64 != 0) ++buffer;
  const std::int64_t passes = std::max<std::int64_t>(1, (std::int64_t{64} << 20) / bytes);
  return sample(samples, static_cast<double>(passes * chunks * chunk) * sizeof(float), [&] {
    pool.parallel_for(passes * chunks, 1, [&](std::int64_t begin, std::int64_t, int) {
      sink = probe.sum(buffer + begin % chunks * chunk, chunk);
    });
  });
}

nlohmann::json machine() {
  nlohmann::json tables = nlohmann::json::array();
  int count = 0;
  const KernelTable* const* runnable = runnable_kernel_tables(&count);
  for (int i = 0; i < count; ++i) tables.push_back(runnable[i]->name);
  return {{"cpu", cpu_model()},
          {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_gib",
           static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 0x1p30},
          {"tables", tables},
          {"compiler", "gcc " __VERSION__}};
}

double load_average() {
  double load[1] = {0};
  return getloadavg(load, 1) == 1 ? load[0] : -1;
}

void print_result(const nlohmann::json& result) { std::printf("RESULT %s\n", result.dump().c_str()); }

}  // namespace dgemma::bench
