// One denoising step of DiffusionGemma 26B-A4B with random weights: a canvas with self-conditioning over a context, as
// engine/session.cc runs it (without the sampler, a few sorts of 256 numbers). Prints the step's stages, the operations
// of a sliding and of a full layer replayed one by one, and what the 30 layers of the model would take.
//   bench_step --type q4_k --layers 2 --context 512 --threads 2
// With --model the same on a checkpoint file, and first what opening it takes and how much memory a sequence needs:
//   bench_step --model big.gguf --context 3840
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "limits.h"
#include "model/forward.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/head.h"
#include "ops/linear.h"
#include "random_model.h"
#include "step_file.h"

namespace dgemma::bench {
namespace {

struct Options {
  std::string type = "q4_k", precision = "int8", model;
  std::int64_t layers = 2, context = 512, canvas = 256, sequences = 1;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int repeats = 5;
  double max_gib = 16;
};

// What a stage does: operations (a multiply-add is two), bytes of stored weights or of keys and values read, and the
// operations that are products with stored weights, which may be of bytes.
struct Cost {
  double flops = 0, bytes = 0, products = 0;
  Cost operator+(Cost other) const { return {flops + other.flops, bytes + other.bytes, products + other.products}; }
};

Cost linear_cost(std::int64_t rows, WeightView w) {
  const double products = 2.0 * static_cast<double>(rows * w.rows * w.cols);
  return {products, static_cast<double>(w.rows * w.row_size_bytes()), products};
}

Cost mlp_cost(std::int64_t rows, const GatedMlp& mlp) {
  return linear_cost(rows, mlp.gate) + linear_cost(rows, mlp.up) + linear_cost(rows, mlp.down);
}

// `active`: experts that some row chose; the weights of the others are not read.
Cost expert_cost(const ModelConfig& config, const ExpertWeights& e, std::int64_t rows, std::int64_t active) {
  const double stored = linear_cost(1, e.gate_up).bytes + linear_cost(1, e.down).bytes;
  const double products =
      2.0 * 3.0 * static_cast<double>(rows * config.experts_used * config.moe_intermediate * config.hidden);
  return {products, stored * static_cast<double>(active) / static_cast<double>(config.experts), products};
}

struct Stage {
  std::string name;
  Cost cost;
  double times = 1;                   // in one step of the model at hand
  double times_30 = 1;                // in one step of the whole model
  std::vector<double> wall{}, cpu{};  // seconds of one time, one entry a repeat
};

// Stages in the order of their first run.
class Stages {
 public:
  template <typename Body>
  void run(const std::string& name, Cost cost, const Body& body) {
    const Stopwatch watch;
    body();
    add({name, cost, 1, 1, {watch.wall_s()}, {watch.cpu_s()}});
  }
  void add(const Stage& one) {
    for (Stage& stage : all_) {
      if (stage.name != one.name) continue;
      stage.wall.push_back(one.wall[0]);
      stage.cpu.push_back(one.cpu[0]);
      return;
    }
    all_.push_back(one);
  }
  const std::vector<Stage>& all() const { return all_; }
  // The sum of the medians, each as often as `times` or `times_30` says.
  Stage total(const std::string& name, double Stage::*times) const {
    Stage sum{name, {}, 1, 1, {0}, {0}};
    for (const Stage& stage : all_) {
      const double count = stage.*times;
      sum.cost = sum.cost + Cost{count * stage.cost.flops, count * stage.cost.bytes, count * stage.cost.products};
      sum.wall[0] += count * median(stage.wall);
      sum.cpu[0] += count * median(stage.cpu);
    }
    return sum;
  }

 private:
  std::vector<Stage> all_;
};

class StepBench {
 public:
  StepBench(const Options& options, const ModelConfig& config, const Weights& weights)
      : options_(options),
        config_(config),
        weights_(weights),
        c_(options.threads, kPrecisions.at(options.precision)),
        rows_(options.canvas * options.sequences) {
    for (std::int64_t i = 0; i < options.sequences; ++i) caches_.emplace_back(config_, options.context);
  }

  // step: its stages. whole: the same steps by one stopwatch. sliding, full: a layer's operations. head: its share
  // without the soft embedding.
  Stages step, whole, sliding, full, head;
  double prefill_s = 0;
  std::int64_t active_experts = 0, largest_group = 0;  // of the last layer
  std::vector<double> active_by_layer;                 // of the last step

  Context& context() { return c_; }

  void run() {
    prefill();
    denoise(nullptr);  // has no signal; warms up, and makes the signal of the measured steps
    for (int i = 0; i < options_.repeats; ++i) whole.run("step", {}, [&] { denoise(&step); });
    for (int i = 0; i < options_.repeats; ++i) {
      replay(0, sliding);
      replay(config_.layers.size() - 1, full);
      head.run("logits and sampling alone", linear_cost(rows_, weights_.head), [&] { predict({}); });
    }
  }

 private:
  std::vector<std::int32_t> random_ids(std::int64_t count, std::uint64_t stream) const {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    const auto vocabulary = static_cast<std::uint32_t>(config_.vocabulary);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int32_t>(random_below(2, stream, i, vocabulary));
    return ids;
  }

  Cost attention_cost(const LayerConfig& layer, std::int64_t keys) const {
    const double each = static_cast<double>(keys) * static_cast<double>(options_.sequences);
    return {4.0 * each * static_cast<double>(options_.canvas * layer.heads * layer.head_dim),
            2.0 * sizeof(float) * each * static_cast<double>(layer.kv_heads * layer.head_dim), 0};
  }

  std::int64_t keys(std::size_t layer) const {
    std::int64_t count = options_.canvas;
    for (const KeyPiece& piece : caches_[0].pieces(layer)) count += piece.k.rows;
    return count;
  }

  // Every sequence's canvas behind its own cache.
  Pass canvases() {
    std::vector<Segment> segments;
    for (KvCache& cache : caches_) segments.push_back({Role::decoder, options_.canvas, &cache});
    return Pass(segments);
  }

  void prefill() {
    constexpr std::int64_t kChunk = 512;  // SessionSettings::prefill_chunk
    const Stopwatch watch;
    for (std::int64_t done = 0; done < options_.context; done += kChunk) {
      const std::int64_t count = std::min(kChunk, options_.context - done);
      std::vector<Segment> segments;
      for (KvCache& cache : caches_) segments.push_back({Role::encoder, count, &cache});
      const Pass pass(segments);
      embed_pass(c_, config_, weights_, pass, random_ids(pass.rows(), static_cast<std::uint64_t>(done)), {},
                 activations_);
      stack_forward(c_, config_, weights_, pass, activations_);
    }
    prefill_s = watch.wall_s();
  }

  void predict(View soft) {
    std::vector<RowDraw> draws(static_cast<std::size_t>(rows_));
    for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = {0.6f, 1, 0, i};
    predictions_.resize(draws.size());
    head_predict(c_, predictions_, soft, normed_.reshape(rows_, config_.hidden), weights_.head,
                 config_.final_logit_softcapping, draws, {}, buffers_);
  }

  // One step; its stages go to `out`, if given.
  void denoise(Stages* out) {
    Stages dropped;
    Stages& stages = out != nullptr ? *out : dropped;
    const View normed = normed_.reshape(rows_, config_.hidden), signal = signal_.reshape(rows_, config_.hidden);
    const Pass pass = canvases();
    const std::vector<std::int32_t> ids = random_ids(rows_, std::uint64_t{1} << 40);
    stages.run("embed, self-conditioning", mlp_cost(rows_, weights_.self_conditioning),
               [&] { embed_pass(c_, config_, weights_, pass, ids, out != nullptr ? signal : View{}, activations_); });
    Stage kinds[2] = {{"sliding layer", {}, 0, 25, {0}, {0}}, {"full layer", {}, 0, 5, {0}, {0}}};
    double wall = 0, cpu = 0;
    active_by_layer.clear();
    const Stopwatch watch;
    stack_forward(c_, config_, weights_, pass, activations_, [&](std::size_t i, const Slots&, const Routing& routing) {
      count_experts(routing);
      active_by_layer.push_back(static_cast<double>(active_experts));
      Stage& kind = kinds[config_.layers[i].sliding ? 0 : 1];
      kind.cost = layer_cost(i);
      kind.times += 1;
      kind.wall[0] += watch.wall_s() - wall;
      kind.cpu[0] += watch.cpu_s() - cpu;
      wall = watch.wall_s();
      cpu = watch.cpu_s();
    });
    for (Stage& kind : kinds) {
      kind.wall[0] /= kind.times;
      kind.cpu[0] /= kind.times;
      stages.add(kind);
    }
    stages.run("final norm", {}, [&] { final_norm(c_, config_, weights_, normed, activations_.slots().x); });
    const Cost table = linear_cost(rows_, weights_.head);
    stages.run("head, soft embedding", {2 * table.flops, table.bytes, 2 * table.products}, [&] { predict(signal); });
    scale_rows(c_, signal, std::vector<float>(predictions_.size(), config_.embedding_scale));
  }

  void count_experts(const Routing& routing) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(config_.experts), 0);
    for (const std::int32_t expert : routing.experts) ++rows[static_cast<std::size_t>(expert)];
    active_experts = std::count_if(rows.begin(), rows.end(), [](std::int64_t count) { return count > 0; });
    largest_group = *std::max_element(rows.begin(), rows.end());
  }

  Cost layer_cost(std::size_t index) const {
    const Layer& w = weights_.layers[index];
    Cost cost = attention_cost(config_.layers[index], keys(index)) + mlp_cost(rows_, w.dense) +
                linear_cost(rows_, w.experts->router) + expert_cost(config_, w.experts->experts, rows_, active_experts);
    for (const WeightView& matrix : {w.q, w.k, w.v, w.o}) {
      if (matrix) cost = cost + linear_cost(rows_, matrix);
    }
    return cost;
  }

  // The operations of layer_forward (model/forward.cc) with a stopwatch between them. Their sum is printed beside the
  // layer's own time, so that a replay that no longer follows the layer shows.
  void replay(std::size_t index, Stages& out) {
    const Layer& w = weights_.layers[index];
    const LayerConfig& layer = config_.layers[index];
    const float eps = config_.rms_norm_eps;
    const Slots& s = activations_.place(config_, layer, rows_);
    const Pass pass = canvases();
    const ExpertBranch& e = *w.experts;

    const auto once = [&](const char* name, Cost cost, const auto& body) { out.run(name, cost, body); };

    double small_wall = 0, small_cpu = 0;
    const auto minor = [&](const auto& body) {
      const Stopwatch watch;
      body();
      small_wall += watch.wall_s();
      small_cpu += watch.cpu_s();
    };
    minor([&] { rms_norm(c_, s.normed, s.x, w.input_norm, eps); });
    Cost qkv = linear_cost(rows_, w.q) + linear_cost(rows_, w.k);
    if (w.v) qkv = qkv + linear_cost(rows_, w.v);
    once("q, k, v", qkv, [&] {
      linear(c_, s.q, s.normed, w.q);
      linear(c_, s.k, s.normed, w.k);
      if (w.v) linear(c_, s.v, s.normed, w.v);
    });
    minor([&] {
      for (std::int64_t i = 0; !w.v && i < rows_; ++i) std::copy_n(s.k.row(i), s.k.cols, s.v.row(i));
      rms_norm(c_, s.q, s.q, w.q_norm, eps);
      rms_norm(c_, s.k, s.k, w.k_norm, eps);
      rms_norm_unit(c_, s.v, s.v, layer.head_dim, eps);
      rope(c_, s.q, pass.positions(), w.rope_frequencies);
      rope(c_, s.k, pass.positions(), w.rope_frequencies);
    });
    const std::int64_t canvas = options_.canvas;
    const std::vector<KeyRange> ranges(static_cast<std::size_t>(canvas), KeyRange{0, keys(index)});
    once("attention", attention_cost(layer, keys(index)), [&] {
      std::int64_t row = 0;
      for (const KvCache& cache : caches_) {
        std::vector<KeyPiece> pieces = cache.pieces(index);
        pieces.push_back({s.k.slice(row, canvas), s.v.slice(row, canvas)});
        attention(c_, s.attn.slice(row, canvas), s.q.slice(row, canvas), pieces,
                  options_.context + canvas - keys(index), ranges, layer.head_dim, config_.attention_scale);
        row += canvas;
      }
    });
    once("o", linear_cost(rows_, w.o), [&] { linear(c_, s.branch, s.attn, w.o); });
    minor([&] {
      rms_norm(c_, s.branch, s.branch, w.post_attention_norm, eps);
      add(c_, s.mid, s.x, s.branch);
      rms_norm(c_, s.normed, s.mid, w.pre_feedforward_norm, eps);
    });
    once("dense gate, up", linear_cost(rows_, w.dense.gate) + linear_cost(rows_, w.dense.up), [&] {
      linear(c_, s.gate, s.normed, w.dense.gate);
      linear(c_, s.up, s.normed, w.dense.up);
    });
    once("dense geglu", {}, [&] { geglu(c_, s.gate, s.gate, s.up); });
    once("dense down", linear_cost(rows_, w.dense.down), [&] { linear(c_, s.dense, s.gate, w.dense.down); });
    minor([&] {
      rms_norm(c_, s.dense, s.dense, e.dense_post_norm, eps);
      rms_norm(c_, s.normed, s.mid, e.router_scale, eps);
    });
    once("router", linear_cost(rows_, e.router), [&] {
      linear(c_, s.router_logits, s.normed, e.router);
      route(activations_.routing, s.router_logits, config_.experts_used, e.per_expert_scale);
    });
    minor([&] { rms_norm(c_, s.normed, s.mid, e.pre_norm, eps); });
    count_experts(activations_.routing);
    once("experts", expert_cost(config_, e.experts, rows_, active_experts),
         [&] { experts(c_, s.moe, s.normed, activations_.routing, e.experts, activations_.expert_buffers); });
    minor([&] {
      rms_norm(c_, s.moe, s.moe, e.post_norm, eps);
      add(c_, s.branch, s.dense, s.moe);
      rms_norm(c_, s.branch, s.branch, w.post_feedforward_norm, eps);
      add(c_, s.x, s.mid, s.branch);
      scale_rows(c_, s.x, std::vector<float>(static_cast<std::size_t>(rows_), w.decoder_scalar));
    });
    out.add({"norms, rope, sums", {}, 1, 1, {small_wall}, {small_cpu}});
  }

  const Options& options_;
  const ModelConfig& config_;
  const Weights& weights_;
  Context c_;
  std::deque<KvCache> caches_;  // one a sequence
  std::int64_t rows_;
  Activations activations_;
  Matrix normed_, signal_;
  HeadBuffers buffers_;
  std::vector<RowPrediction> predictions_;
};

// The bounds of this run.
struct Limits {
  Rate f32, bf16, int8, read;
};

// Prints one line, returns it as JSON. Fractions are by CPU seconds, which leaves other programs' turns out: of the f32
// and bf16 limits for all operations, and of the int8 limit for the products with weights.
nlohmann::json report(const Stage& stage, const Limits& limits) {
  const double wall = median(stage.wall), cpu = median(stage.cpu);
  const double of_f32 = stage.cost.flops / limits.f32.per_cpu_s / cpu;
  const double of_bf16 = stage.cost.flops / limits.bf16.per_cpu_s / cpu;
  const double of_int8 = stage.cost.products / limits.int8.per_cpu_s / cpu;
  const double of_read = stage.cost.bytes / limits.read.per_cpu_s / cpu;
  std::printf("  %-26s x%-3.0f %10.2f ms %10.2f CPU-ms %9.2f GFLOP %8.1f MB", stage.name.c_str(), stage.times,
              wall * 1e3, cpu * 1e3, stage.cost.flops * 1e-9, stage.cost.bytes * 1e-6);
  if (stage.cost.flops > 0) {
    std::printf("   %5.1f %% of f32, %5.1f %% of bf16, %5.1f %% of int8, %5.1f %% of reading", of_f32 * 100,
                of_bf16 * 100, of_int8 * 100, of_read * 100);
  }
  std::printf("\n");
  return {{"name", stage.name},
          {"times", stage.times},
          {"wall_s", wall},
          {"cpu_s", cpu},
          {"flops", stage.cost.flops},
          {"bytes", stage.cost.bytes},
          {"of_f32", of_f32},
          {"of_bf16", of_bf16},
          {"of_int8", of_int8},
          {"of_read", of_read},
          {"products", stage.cost.products}};
}

nlohmann::json report(const char* title, const Stages& stages, const Limits& limits) {
  std::printf("%s\n", title);
  nlohmann::json out = nlohmann::json::array();
  for (const Stage& stage : stages.all()) out.push_back(report(stage, limits));
  if (stages.all().size() > 1) out.push_back(report(stages.total("sum", &Stage::times), limits));
  return out;
}

Rate mean(const Rate& a, const Rate& b) {
  return {(a.per_s + b.per_s) / 2, (a.per_cpu_s + b.per_cpu_s) / 2, std::max(a.best_per_s, b.best_per_s)};
}

void run(Options options) {
  if (options.canvas < 1 || options.canvas > 256) bad_input("expected --canvas 1 .. 256, found {}", options.canvas);
  if (options.sequences < 1 || options.sequences > 64) {
    bad_input("expected --sequences 1 .. 64, found {}", options.sequences);
  }
  if (options.layers < 2 || options.context < 1 || options.threads < 1 || options.repeats < 5) {
    bad_input("expected --layers >= 2 (one of each kind), --context >= 1, --threads >= 1 and --repeats >= 5");
  }
  const double load_before = load_average();
  std::optional<RandomModel> random;
  std::optional<StepFile> file;
  if (options.model.empty()) {
    random.emplace(options.layers, options.type, static_cast<std::int64_t>(options.max_gib * 0x1p30));
  } else {
    file.emplace(options.model, options.context + options.canvas, options.threads, kPrecisions.at(options.precision));
    options.layers = static_cast<std::int64_t>(file->engine().config().layers.size());
    options.type = options.model;
  }
  const std::int64_t weights_bytes = file ? file->size_bytes() : random->size_bytes();
  StepBench bench(options, file ? file->engine().config() : random->config(),
                  file ? file->engine().weights() : random->weights());
  ThreadPool& pool = bench.context().pool();
  const char* table = bench.context().kernels().name;
  const auto measure = [&] {
    return Limits{f32_limit(pool, table), bf16_limit(pool, table), int8_limit(pool, table),
                  read_limit(pool, table, kMemoryBytes)};
  };
  const Limits before = measure();
  bench.run();
  const Limits after = measure();
  const Limits limits{mean(before.f32, after.f32), mean(before.bf16, after.bf16), mean(before.int8, after.int8),
                      mean(before.read, after.read)};
  const double load_after = load_average();

  std::printf(
      "%s, %lld layers, %.2f GiB of weights, context %lld, canvas %lld x %lld, %d threads, table %s, "
      "load average %.1f .. %.1f\n",
      options.type.c_str(), static_cast<long long>(options.layers), static_cast<double>(weights_bytes) / 0x1p30,
      static_cast<long long>(options.context), static_cast<long long>(options.canvas),
      static_cast<long long>(options.sequences), options.threads, table, load_before, load_after);
  std::printf(
      "limits of a thread's CPU second: %.1f GFLOP, %.1f in bf16, %.1f GOP of bytes (before %.1f, after %.1f), reading "
      "%.1f GB\n",
      limits.f32.per_cpu_s * 1e-9, limits.bf16.per_cpu_s * 1e-9, limits.int8.per_cpu_s * 1e-9,
      before.int8.per_cpu_s * 1e-9, after.int8.per_cpu_s * 1e-9, limits.read.per_cpu_s * 1e-9);
  // 1 when the machine was ours alone and no thread waited for another: the wall figures mean little far below that.
  const double share = bench.step.total("", &Stage::times).cpu[0] /
                       (bench.step.total("", &Stage::times).wall[0] * static_cast<double>(options.threads));
  std::printf("the threads had a CPU %.0f %% of the time\n", share * 100);
  std::printf(
      "prefill: %.2f s, %.1f tokens/s; experts of the last layer: %lld of 128 active, at most %lld rows; "
      "all layers: %.1f active (median)\n",
      bench.prefill_s, static_cast<double>(options.context * options.sequences) / bench.prefill_s,
      static_cast<long long>(bench.active_experts), static_cast<long long>(bench.largest_group),
      median(bench.active_by_layer));
  nlohmann::json result = {{"bench", "step"},
                           {"machine", machine()},
                           {"type", options.type},
                           {"precision", options.precision},
                           {"layers", options.layers},
                           {"context", options.context},
                           {"canvas", options.canvas},
                           {"sequences", options.sequences},
                           {"threads", options.threads},
                           {"repeats", options.repeats},
                           {"table", table},
                           {"weights_bytes", weights_bytes},
                           {"load_before", load_before},
                           {"load_after", load_after},
                           {"limit_flop_per_s", limits.f32.per_s},
                           {"limit_flop_per_cpu_s", limits.f32.per_cpu_s},
                           {"limit_bf16_flop_per_cpu_s", limits.bf16.per_cpu_s},
                           {"limit_int8_op_per_s", limits.int8.per_s},
                           {"limit_int8_op_per_cpu_s", limits.int8.per_cpu_s},
                           {"limit_read_byte_per_s", limits.read.per_s},
                           {"limit_read_byte_per_cpu_s", limits.read.per_cpu_s},
                           {"cpu_share", share},
                           {"prefill_s", bench.prefill_s},
                           {"active_experts_by_layer", bench.active_by_layer}};
  if (file) result["file"] = file->report();
  result["step"] = report("one step, by stage", bench.step, limits);
  result["sliding_layer"] = report("operations of a sliding layer", bench.sliding, limits);
  result["full_layer"] = report("operations of a full layer", bench.full, limits);
  result["head"] = report("part of the head", bench.head, limits);
  std::printf("whole\n");
  Stage whole = bench.whole.all()[0];
  whole.cost = bench.step.total("step", &Stage::times).cost;
  whole.name = "step, measured";
  result["whole"] = report(whole, limits);
  const Stage all = bench.step.total("30 layers, predicted", &Stage::times_30);
  result["predicted_30_layers"] = report(all, limits);
  // Dense count: all products with weights, done or avoided, and nothing else; all the time.
  result["fraction_of_int8_limit"] = all.cost.products / all.cpu[0] / limits.int8.per_cpu_s;
  result["fraction_of_int8_limit_by_wall"] = all.cost.products / all.wall[0] / limits.int8.per_s;
  std::printf("fraction of the int8 limit: %.1f %% by CPU seconds, %.1f %% by the wall\n",
              100 * result["fraction_of_int8_limit"].get<double>(),
              100 * result["fraction_of_int8_limit_by_wall"].get<double>());
  print_result(result);
}

}  // namespace
}  // namespace dgemma::bench

int main(int argc, char** argv) {
  dgemma::bench::Options options;
  CLI::App app("One denoising step of DiffusionGemma 26B-A4B with random weights");
  app.add_option("--type", options.type, "format of the random weights: f32, bf16, q8_0 or q4_k")
      ->capture_default_str();
  app.add_option("--model", options.model, "measure on this checkpoint file (random_checkpoint makes one)");
  app.add_option("--precision", options.precision, "what products round to: int8, bf16 or f32")
      ->check(CLI::IsMember(dgemma::kPrecisions))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "layers, at least 2; the model has 30")->capture_default_str();
  app.add_option("--context", options.context, "cached positions before the canvas")->capture_default_str();
  app.add_option("--canvas", options.canvas, "rows of the canvas, at most 256")->capture_default_str();
  app.add_option("--sequences", options.sequences, "sequences in a pass, each with a canvas and a context of its own")
      ->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--repeats", options.repeats, "measured steps, at least 5; medians are reported")
      ->capture_default_str();
  app.add_option("--max-gib", options.max_gib, "most memory for weights")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    dgemma::bench::run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
