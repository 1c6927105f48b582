// Every kernel of every table that this CPU runs, and the decoders of all formats, on one thread. Rates are per CPU
// second, so that other programs on the machine do not count; products also as a fraction of the f32 or int8 limit
// measured in the same run ("of_limit"), work on weights in memory as a fraction of the read bandwidth.
//   bench_kernels [--benchmark_filter=REGEX ...]     options of Google Benchmark; medians of five
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/dequantize.h"
#include "kernels/quantize.h"
#include "kernels/table.h"
#include "limits.h"
#include "tensor/dtype.h"

namespace {

using benchmark::Counter;
using dgemma::DType;
using dgemma::KernelTable;

constexpr int kRepetitions = 5;

std::vector<float> random_floats(std::int64_t count, std::uint64_t stream) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(2 * dgemma::random_uniform(1, stream, i) - 1);
  }
  return out;
}

Counter per_second(double amount) { return {amount, Counter::kIsIterationInvariantRate, Counter::kIs1000}; }

void add(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->MinTime(0.1)->Repetitions(kRepetitions)->ReportAggregatesOnly();
}

// c[m, n] (+)= a[m, k] b. `tile`: weight rows a call, as ops/linear.cc cuts them; tile = n is one call. `ldb`: elements
// between rows of b, more than its width for the keys and values of one head.
struct Product {
  const char* use;
  std::int64_t m, n, k, tile, ldb;
};

constexpr Product kNt[] = {
    {"dense", 256, 2816, 2816, 16, 2816},  // one of a layer's dense matrices
    {"dense", 256, 704, 2816, 16, 2816},   //
    {"dense", 256, 2816, 704, 16, 704},    //
    {"dense_one_call", 256, 2816, 2816, 2816, 2816},
    {"expert_gate_up", 16, 1408, 2816, 16, 2816},  // 256 rows * 8 of 128 experts: 16 rows an expert
    {"expert_down", 16, 2816, 704, 16, 704},
    {"scores", 24, 1280, 256, 1280, 2048},        // 24 queries of one sliding head, 1,024 + 256 keys
    {"scores_packed", 24, 1280, 256, 1280, 256},  // were a head's keys side by side
    {"scores_full", 24, 1280, 512, 1280, 1024},   // the same on a full layer
    {"one_row", 1, 2816, 2816, 16, 2816},         // autoregressive decoding
};

constexpr Product kNn[] = {
    {"dense", 256, 2816, 2816, 0, 2816},
    {"dense", 256, 704, 2816, 0, 704},
    {"values", 24, 256, 1280, 0, 2048},
    {"values_packed", 24, 256, 1280, 0, 256},
    {"values_full", 24, 512, 1280, 0, 1024},
    {"soft_embedding", 24, 2816, 256, 0, 2816},  // ops/head.cc: 24 rows' probabilities times a vocabulary tile
};

void add_products(const KernelTable& table, double limit) {
  const auto name = [&](const char* kernel, const Product& p) {
    return fmt::format("{}/{}/{}/m:{}/n:{}/k:{}", kernel, table.name, p.use, p.m, p.n, p.k);
  };
  const auto count = [limit](benchmark::State& state, const Product& p) {
    const double flops = 2.0 * static_cast<double>(p.m * p.n * p.k);
    state.counters["flop/s"] = per_second(flops);
    state.counters["of_limit"] = per_second(flops / limit);
  };
  for (const Product& p : kNt) {
    add(name("gemm_nt", p), [&table, p, count](benchmark::State& state) {
      const std::vector<float> a = random_floats(p.m * p.k, 1), b = random_floats(p.n * p.ldb, 2);
      std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
      for (auto _ : state) {
        for (std::int64_t row = 0; row < p.n; row += p.tile) {
          table.gemm_nt(a.data(), p.k, b.data() + row * p.ldb, p.ldb, c.data() + row, p.n, p.m,
                        std::min(p.tile, p.n - row), p.k);
        }
        benchmark::DoNotOptimize(c.data());
      }
      count(state, p);
    });
  }
  for (const Product& p : kNn) {
    add(name("gemm_nn_add", p), [&table, p, count](benchmark::State& state) {
      const std::vector<float> a = random_floats(p.m * p.k, 1), b = random_floats(p.k * p.ldb, 2);
      std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
      for (auto _ : state) {
        table.gemm_nn_add(a.data(), p.k, b.data(), p.ldb, c.data(), p.n, p.m, p.n, p.k);
        benchmark::DoNotOptimize(c.data());
      }
      count(state, p);
    });
  }
}

void add_rows(const KernelTable& table) {
  const auto row = [&](const char* kernel, std::int64_t n,
                       const std::function<void(float*, const float*, const float*)>& body) {
    add(fmt::format("{}/{}/{}", kernel, table.name, n), [n, body](benchmark::State& state) {
      const std::vector<float> x = random_floats(n, 1), z = random_floats(n, 2);
      std::vector<float> y = x;
      for (auto _ : state) {
        body(y.data(), x.data(), z.data());
        benchmark::DoNotOptimize(y.data());
      }
      state.counters["element/s"] = per_second(static_cast<double>(n));
    });
  };
  row("rms_norm", 2816, [&table](float* y, const float* x, const float* z) {
    table.scale_weight(y, x, 1.0f + table.sum_squares(x, 2816), z, 2816);
  });
  row("geglu", 2112, [&table](float* y, const float* x, const float* z) { table.geglu(y, x, z, 2112); });
  row("geglu", 704, [&table](float* y, const float* x, const float* z) { table.geglu(y, x, z, 704); });
  row("maximum", 1280, [&table](float* y, const float* x, const float*) { y[0] = table.maximum(x, 1280); });
  // In place: after the first call the arguments are exp of the last ones, all within [0, e]; the speed is the same.
  row("exp_sum", 1280, [&table](float* y, const float*, const float*) { y[0] = table.exp_sum(y, 1.0f, 1280) * 0; });
  row("soft_cap", 256, [&table](float* y, const float*, const float*) { table.soft_cap(y, 30.0f, 1.0f, 256); });
  row("multiply", 1280, [&table](float* y, const float*, const float*) { table.multiply(y, 1.0f, 1280); });
}

constexpr DType kStored[] = {DType::f32,  DType::f16,    DType::bf16,   DType::q8_0,  DType::q4_0, DType::q4_1,
                             DType::q5_0, DType::q5_1,   DType::q2_k,   DType::q3_k,  DType::q4_k, DType::q5_k,
                             DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4, DType::nvfp4};

// Stored bytes of `elements`: encoded random numbers where there is an encoder, else random bytes, whose time to decode
// is the same (no decoder branches on the values) as long as no scale makes subnormal floats.
std::vector<std::byte> stored(DType dtype, std::int64_t elements) {
  std::vector<std::byte> out(static_cast<std::size_t>(dgemma::row_bytes(dtype, elements)));
  const auto block = static_cast<std::size_t>(dgemma::block_shape(dtype).bytes);
  if (const dgemma::QuantizeFunction quantize = dgemma::quantize_for(static_cast<std::uint32_t>(dtype))) {
    quantize(random_floats(elements, 3).data(), out.data(), elements);
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(dgemma::random_below(1, 4, i, 64));
  for (std::size_t i = 0; dtype == DType::mxfp4 && i < out.size(); i += block) out[i] = std::byte{0x78};
  return out;
}

// Panel after panel of weights that no cache holds, times the same m rows of activations: what a layer does with m rows
// an expert, or with one row when it decodes. `prepare(m, k)` rounds the activations and returns the product with a
// panel.
template <typename Prepare>
void add_panels(const std::string& kernel, DType dtype, double limit, double read_bytes_per_s, const Prepare& prepare) {
  const std::int64_t k = dtype == DType::q5_0 || dtype == DType::q8_0 ? 704 : 2816;  // down projections; the others
  for (const std::int64_t m : {1, 16, 24, 64, 256}) {
    add(fmt::format("{}/{}/m:{}/n:{}/k:{}", kernel, dgemma::dtype_name(dtype), m, dgemma::kPanelRows, k),
        [=](benchmark::State& state) {
          const std::vector<std::byte> panel = stored(dtype, dgemma::kPanelRows * k);
          const std::int64_t panels = (std::int64_t{64} << 20) / static_cast<std::int64_t>(panel.size());
          std::vector<std::byte> weights;
          for (std::int64_t i = 0; i < panels; ++i) weights.insert(weights.end(), panel.begin(), panel.end());
          const auto multiply = prepare(m, k);
          std::vector<float> c(static_cast<std::size_t>(m * dgemma::kPanelRows));
          std::size_t next = 0;
          for (auto _ : state) {
            multiply(weights.data() + next, c.data());
            next = next + panel.size() == weights.size() ? 0 : next + panel.size();
            benchmark::DoNotOptimize(c.data());
          }
          const double ops = 2.0 * static_cast<double>(m * k * dgemma::kPanelRows);
          state.counters["op/s"] = per_second(ops);
          state.counters["of_limit"] = per_second(ops / limit);
          state.counters["of_read"] = per_second(static_cast<double>(panel.size()) / read_bytes_per_s);
        });
  }
}

void add_int8(const KernelTable& table, double limit, double read_bytes_per_s) {
  for (const DType dtype : kStored) {
    const dgemma::Int8Gemm gemm = table.gemm_int8[static_cast<int>(dtype)];
    if (gemm == nullptr) continue;
    add_panels(fmt::format("gemm_int8/{}", table.name), dtype, limit, read_bytes_per_s,
               [&table, gemm](std::int64_t m, std::int64_t k) {
                 std::vector<std::int8_t> codes(static_cast<std::size_t>(m * k));
                 std::vector<dgemma::ActivationBlock> blocks(codes.size() / dgemma::kActivationBlock);
                 table.quantize_activations(random_floats(m * k, 1).data(), codes.data(), blocks.data(), m * k);
                 return [gemm, m, k, codes, blocks](const std::byte* panel, float* c) {
                   gemm(codes.data(), blocks.data(), m, panel, dgemma::kPanelRows, k, c, dgemma::kPanelRows);
                 };
               });
  }
}

void add_bf16(const KernelTable& table, double limit, double read_bytes_per_s) {
  for (const DType dtype : kStored) {
    const dgemma::Bf16Gemm gemm = table.gemm_bf16[static_cast<int>(dtype)];
    if (gemm == nullptr) continue;
    add_panels(fmt::format("gemm_bf16/{}", table.name), dtype, limit, read_bytes_per_s,
               [&table, gemm](std::int64_t m, std::int64_t k) {
                 std::vector<std::uint16_t> packed(static_cast<std::size_t>((m + 15) / 16 * 16 * k));
                 table.pack_bf16(random_floats(m * k, 1).data(), k, m, k, packed.data());
                 return [gemm, m, k, packed](const std::byte* panel, float* c) {
                   gemm(packed.data(), m, panel, dgemma::kPanelRows, k, c, dgemma::kPanelRows);
                 };
               });
  }
}

void add_decoders(double read_bytes_per_s) {
  constexpr std::int64_t kOffGrid = 512;     // floats
  constexpr std::int64_t kTile = 16 * 2816;  // what ops/linear.cc unpacks at a time
  for (const DType dtype : kStored) {
    const dgemma::DequantizeFunction decode = dgemma::dequantize_for(static_cast<std::uint32_t>(dtype));
    if (decode == nullptr) continue;
    const std::int64_t tile_bytes = dgemma::row_bytes(dtype, kTile);
    const auto count = [tile_bytes, read_bytes_per_s](benchmark::State& state) {
      state.counters["element/s"] = per_second(static_cast<double>(kTile));
      state.counters["byte/s"] = per_second(static_cast<double>(tile_bytes));
      state.counters["of_limit"] = per_second(static_cast<double>(tile_bytes) / read_bytes_per_s);
    };
    add(fmt::format("dequantize/{}/cache", dgemma::dtype_name(dtype)), [dtype, decode, count](benchmark::State& state) {
      const std::vector<std::byte> in = stored(dtype, kTile);
      // Off the page grid of `in`, or each store of the F32 copy waits for a load a multiple of 4 KiB away.
      std::vector<float> out(static_cast<std::size_t>(kTile + kOffGrid));
      for (auto _ : state) {
        decode(in.data(), out.data() + kOffGrid, kTile);
        benchmark::DoNotOptimize(out.data());
      }
      count(state);
      state.counters.erase("of_limit");
    });
    // Tile after tile of weights that no cache holds, into the same scratch: what a layer does.
    add(fmt::format("dequantize/{}/memory", dgemma::dtype_name(dtype)),
        [dtype, decode, count, tile_bytes](benchmark::State& state) {
          const std::vector<std::byte> tile = stored(dtype, kTile);
          const std::int64_t tiles = (std::int64_t{192} << 20) / tile_bytes;
          std::vector<std::byte> in;
          in.reserve(static_cast<std::size_t>(tiles * tile_bytes));
          for (std::int64_t i = 0; i < tiles; ++i) in.insert(in.end(), tile.begin(), tile.end());
          std::vector<float> out(static_cast<std::size_t>(kTile));
          std::int64_t next = 0;
          for (auto _ : state) {
            decode(in.data() + next * tile_bytes, out.data(), kTile);
            next = next + 1 == tiles ? 0 : next + 1;
            benchmark::DoNotOptimize(out.data());
          }
          count(state);
        });
  }
}

// Prints as Google Benchmark does, and keeps the medians for the result line.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_None) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> medians;
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median") continue;
      medians.push_back(run);
      nlohmann::json entry = {{"ns", run.GetAdjustedCPUTime()}};
      for (auto& [name, counter] : medians.back().counters) {
        entry[name] = counter.value;
        if (name.starts_with("of_")) counter.flags = Counter::kDefaults;  // a fraction: printed without "/s"
      }
      results_[run.run_name.function_name] = entry;
    }
    if (!medians.empty()) ConsoleReporter::ReportRuns(medians);
  }
  const nlohmann::json& results() const { return results_; }

 private:
  nlohmann::json results_ = nlohmann::json::object();
};

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const double load_before = dgemma::bench::load_average();
  dgemma::ThreadPool pool(1);
  int count = 0;
  const KernelTable* const* tables = dgemma::runnable_kernel_tables(&count);
  nlohmann::json limits, int8_limits, bf16_limits;
  const double read = dgemma::bench::read_limit(pool, tables[count - 1]->name, dgemma::bench::kMemoryBytes).per_cpu_s;
  std::printf("read bandwidth of one thread %.1f GB/s\n", read * 1e-9);
  for (int i = 0; i < count; ++i) {
    const double limit = dgemma::bench::f32_limit(pool, tables[i]->name).per_cpu_s;
    limits[tables[i]->name] = limit;
    const double int8_limit = dgemma::bench::int8_limit(pool, tables[i]->name).per_cpu_s;
    int8_limits[tables[i]->name] = int8_limit;
    const double bf16_limit = dgemma::bench::bf16_limit(pool, tables[i]->name).per_cpu_s;
    bf16_limits[tables[i]->name] = bf16_limit;
    std::printf("%-11s limits of one thread: f32 %.1f GFLOP/s, int8 %.1f GOP/s, bf16 %.1f GFLOP/s\n", tables[i]->name,
                limit * 1e-9, int8_limit * 1e-9, bf16_limit * 1e-9);
    add_int8(*tables[i], int8_limit, read);
    add_bf16(*tables[i], bf16_limit, read);
    add_products(*tables[i], limit);
    add_rows(*tables[i]);
  }
  add_decoders(read);
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  dgemma::bench::print_result({{"bench", "kernels"},
                               {"machine", dgemma::bench::machine()},
                               {"load_before", load_before},
                               {"load_after", dgemma::bench::load_average()},
                               {"limit_flop_per_s", limits},
                               {"limit_int8_op_per_s", int8_limits},
                               {"limit_bf16_flop_per_s", bf16_limits},
                               {"limit_read_byte_per_s", read},
                               {"results", reporter.results()}});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
