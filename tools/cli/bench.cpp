#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "cli/bench_data.hpp"
#include "cli/bench_plan.hpp"
#include "cli/block_memory.hpp"
#include "cli/commands.hpp"
#include "cli/peer.hpp"
#include "cli/progress.hpp"
#include "cli/roofline.hpp"
#include "cli/way.hpp"

// Time over ops, models, tokens and providers.
namespace gatefold::cli {
namespace {

constexpr const char* help =
    "Providers of gate_up, gemm_gated and mlp: gatefold; unfused (products, then act_and_mul); eager (products, then "
    "an\n"
    "activation pass and a multiplication pass); gemm-only (the products, with no activation). The\n"
    "products are cuBLASLt's on a GPU (of its heuristics' top candidates the fastest), the library's own gemm on a "
    "CPU;\n"
    "gatefold:NAME: gatefold with that implementation, or one of its kernels, forced, whatever --impl says.\n"
    "gemm, on a GPU: the library's own products, with no activation. Of act_and_mul: gatefold, eager, and copy (a copy "
    "that moves as many bytes).\n"
    "--peer NAME=FILE adds another gate_up as provider peer-NAME: another build of libgatefold, to hold a change\n"
    "against what was, or a shared library that exports gatefold_peer.h's function, and takes the weights as --layout "
    "says.\n"
    "memory: what a provider alone takes beside x and the weights, measured.\n"
    "Providers take turns in rounds, in a new order each, and on a GPU each first runs as long untimed; times are "
    "medians of the rounds, ratios the medians of the rounds' ratios, > 1\n"
    "faster than the baseline. Random normal data; weights rotate past the last-level cache.\n"
    "--roofline adds bytes, operations, their ratio, what bounds them on this device, and the fraction of that bound\n"
    "which was reached. Measured here: on a GPU, before and after, a copy's bandwidth and the largest products' rate; "
    "on a\n"
    "CPU, by turns with the providers, the bandwidth of reading, and the peak of the instruction set that computes a\n"
    "row's products, its unit.";

class Bench {
 public:
  Bench(const BenchOptions& options, const BenchPlan& plan)
      : options_(options), plan_(plan), backend_(make_backend(plan.device)) {
    if (options.roofline) roofline_.emplace(*backend_, plan.dtype, options.timing);
  }

  std::vector<Json> run() {
    expect_ways();
    measure_peaks();
    for (const gatefold_op op : plan_.ops) {
      for (const Shape& shape : plan_.shapes) run_model(op, shape);
    }
    measure_peaks();
    if (roofline_) std::ranges::for_each(rows_, [&](Json& row) { roofline_->compare(row); });
    progress_.clear();
    return std::move(rows_);
  }

  Json context() const {
    Json context = base_context();
    context.update(backend_->describe());
    context["rounds"] = options_.timing.rounds;
    context["min_time_ms"] = options_.timing.min_time_ms;
    context["seed"] = options_.seed;
    context["cache_bytes"] = backend_->cache_bytes();
    context["rotated_bytes"] = rotated_bytes_ ? Json(*rotated_bytes_) : Json(nullptr);
    if (options_.seconds > 0.0) context["cells_left_out"] = cells_left_out_;
    if (roofline_) roofline_->add_to(context);
    return context;
  }

  const std::optional<Roofline>& roofline() const { return roofline_; }
  std::size_t cells_left_out() const { return cells_left_out_; }

 private:
  // The first cell runs in any case.
  bool time_is_up() const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return options_.seconds > 0.0 && !rows_.empty() && passed.count() >= options_.seconds;
  }

  // Before anything is measured: some ways have no peak.
  void expect_ways() {
    if (!roofline_) return;
    for (const gatefold_op op : plan_.ops) {
      for (const Shape& shape : plan_.shapes) {
        for (const Way& way : ways_of(op, plan_.block(shape, plan_.tokens.front()))) roofline_->expect(way);
      }
    }
  }

  void measure_peaks() {
    if (!roofline_) return;
    progress_.show("measuring the device's peaks");
    roofline_->measure();
  }

  std::vector<Way> ways_of(gatefold_op op, const Block& block) const {
    std::vector<Way> ways;
    for (const Provider& provider : plan_.providers) {
      if (auto way = provider.make(op, block)) ways.push_back(std::move(*way));
    }
    return ways;
  }

  void run_model(gatefold_op op, const Shape& shape) {
    if (time_is_up()) {
      cells_left_out_ += plan_.tokens.size();
      return;
    }
    std::optional<RotatingWeights> weights;
    if (op != GATEFOLD_OP_ACT_AND_MUL) {
      progress_.show("drawing the weights of " + shape.model);
      weights.emplace(*backend_, plan_.block(shape, 0), op == GATEFOLD_OP_MLP, options_.seed);
      rotated_bytes_ = std::min(rotated_bytes_.value_or(weights->bytes()), weights->bytes());
    }
    for (const std::int64_t tokens : plan_.tokens) {
      if (time_is_up()) {
        ++cells_left_out_;
      } else {
        run_cell(op, shape, plan_.block(shape, tokens), weights ? &*weights : nullptr);
      }
    }
  }

  void run_cell(gatefold_op op, const Shape& shape, const Block& block, const RotatingWeights* weights) {
    const std::vector<Way> ways = ways_of(op, block);
    if (ways.empty()) return;
    const BenchData data(*backend_, op, block, ways, weights, options_.seed);
    const std::string cell = fmt::format("{}, {}, {} tokens: ", name_of(op), shape.model, block.tokens);
    for (const Way& way : ways) {
      progress_.show(cell + "preparing " + way.provider);
      for (const StagePtr& stage : way.stages) stage->prepare(data.of_call(0), *backend_);
    }
    std::vector<Participant> participants;
    for (const Way& way : ways) {
      participants.push_back({way.provider, [&](std::int64_t call) { way.enqueue(data.of_call(call), *backend_); }});
    }
    if (roofline_) std::ranges::copy(roofline_->participants(), std::back_inserter(participants));
    const auto samples = time_in_rounds(*backend_, participants, options_.timing,
                                        [&](const std::string& what) { progress_.show(cell + what); });
    std::vector<std::optional<std::size_t>> memory;
    for (const Way& way : ways) memory.push_back(memory_of(way, block, data));
    add_rows(shape, block, ways, samples, memory);
  }

  // The bytes of the device that a provider takes by itself beside x and the weights: what it writes, and workspaces,
  // whoever allocates them. Only where no operand shares a buffer with what a baseline writes.
  std::optional<std::size_t> memory_of(const Way& like, const Block& block, const BenchData& data) {
    const bool block_output = like.op == GATEFOLD_OP_MLP;
    if (like.op != GATEFOLD_OP_GATE_UP && !block_output) return {};
    const bool bare = like.provider == "gemm-only" || like.provider == "gemm";
    const bool stores_products = !like.provider.starts_with("gatefold") && !is_peer(like.provider);
    const std::size_t before = backend_->memory_in_use();
    const Way way = *plan_.provider(like.provider).make(like.op, block);
    const BlockMemory memory(*backend_, block,
                             {.gate_and_up = stores_products,
                              .activated = like.provider == "eager",
                              .h = block_output ? stores_products : !bare,
                              .y = block_output,
                              .room_for_copy = false},
                             way.workspace_size());
    way.enqueue(memory.tensors(data.of_call(0)), *backend_);
    backend_->synchronise();
    return backend_->memory_in_use() - before;
  }

  void add_rows(const Shape& shape, const Block& block, const std::vector<Way>& ways,
                const std::vector<Samples>& samples, const std::vector<std::optional<std::size_t>>& memory) {
    const auto samples_of = [&](const char* provider) -> const Samples* {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        if (ways[i].provider == provider) return &samples[i];
      }
      return nullptr;
    };
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const Baselines baselines{samples_of("unfused"), samples_of("gemm-only")};
      Json row = result_row(ways[i], block, shape.model, samples[i], baselines);
      row["memory_bytes"] = memory[i] ? Json(*memory[i]) : Json(nullptr);
      for (std::size_t j = 0; j < ways.size(); ++j) {
        if (is_peer(ways[j].provider)) row["ratio_vs_" + ways[j].provider] = speed_ratio(samples[j], samples[i]);
      }
      if (ways[i].op == GATEFOLD_OP_ACT_AND_MUL) {
        for (const char* baseline : {"eager", "copy"}) {
          const Samples* theirs = samples_of(baseline);
          row[std::string("ratio_vs_") + baseline] =
              theirs == nullptr ? Json(nullptr) : Json(speed_ratio(*theirs, samples[i]));
        }
      }
      if (roofline_) roofline_->describe(row, ways[i], samples[i], std::span(samples).subspan(ways.size()));
      rows_.push_back(std::move(row));
    }
  }

  const BenchOptions& options_;
  const BenchPlan& plan_;
  std::unique_ptr<Backend> backend_;
  std::optional<Roofline> roofline_;
  std::optional<std::size_t> rotated_bytes_;  // the fewest of any model's weights
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t cells_left_out_ = 0;
  Progress progress_;
  std::vector<Json> rows_;
};

std::vector<Column> columns_of(const BenchPlan& plan, const std::optional<Roofline>& roofline) {
  std::vector<Column> columns{{"op", "op", plain_text},
                              {"model", "model", plain_text},
                              {"tokens", "tokens", plain_text},
                              {"provider", "provider", plain_text},
                              {"implementation", "implementation", plain_text},
                              {"time_us", "time", time_text},
                              {"time_us_p10", "p10", time_text},
                              {"time_us_p90", "p90", time_text},
                              {"tflops", "TFLOP/s", number_text},
                              {"gbps", "GB/s", number_text},
                              {"bytes_intermediate", "intermediates", bytes_text},
                              {"memory_bytes", "memory", bytes_text},
                              {"ratio_vs_unfused", "vs unfused", ratio_text},
                              {"ratio_vs_gemm_only", "vs gemm-only", ratio_text}};
  if (std::find(plan.ops.begin(), plan.ops.end(), GATEFOLD_OP_ACT_AND_MUL) != plan.ops.end()) {
    columns.push_back({"ratio_vs_eager", "vs eager", ratio_text});
    columns.push_back({"ratio_vs_copy", "vs copy", ratio_text});
  }
  for (const Provider& provider : plan.providers) {
    if (is_peer(provider.name)) columns.push_back({"ratio_vs_" + provider.name, "vs " + provider.name, ratio_text});
  }
  if (roofline) std::ranges::copy(roofline->columns(), std::back_inserter(columns));
  return columns;
}

int bench(BenchOptions options) {
  const BenchPlan plan(options);
  Bench job(options, plan);
  Report report;
  report.rows = job.run();
  report.context = job.context();
  if (report.rows.empty()) {
    checkpoint::throw_input_error("bench: none of the providers asked for computes ", options.ops.front(),
                                  " with layout ", options.layout);
  }
  report.columns = columns_of(plan, job.roofline());
  report.title = fmt::format("{}, {}, on {}: {} rounds of {} ms", name_of(plan.dtype), name_of(plan.layout),
                             name_of(plan.device), options.timing.rounds, options.timing.min_time_ms);
  if (job.roofline()) report.notes.push_back(job.roofline()->note());
  if (job.cells_left_out() > 0) {
    report.notes.push_back(fmt::format("{} cells were left out after {} s.", job.cells_left_out(), options.seconds));
  }
  options.output.emit(report);
  return 0;
}

}  // namespace

Command add_bench(const App& root) {
  const App app = root.add_subcommand("bench", "Time over ops, models, tokens and providers");
  auto options = std::make_shared<BenchOptions>();
  app.footer(help);
  app.add_option("ops", options->ops, "act_and_mul, gemm, gemm_gated, gate_up, mlp").capture_default_str();
  app.add_option("--model", options->models, "Presets; default: small ones on a CPU, Llama 3.1 on a GPU")
      .delimiter(',');
  app.add_option("--tp", options->tp, "Tensor parallelism: divides the intermediate size").capture_default_str();
  app.add_option("--tokens", options->tokens, "Numbers of tokens; default: 1,64,512 on a CPU, 512 ... 65536 on a GPU")
      .delimiter(',');
  app.add_option("--provider", options->providers, "Default: all of the device's").delimiter(',');
  app.add_option("--peer", options->peers,
                 "NAME=FILE: a shared library with a fused gate_up of its own, or another libgatefold.so")
      .delimiter(',');
  app.add_option("--dtype", options->dtype, "fp32, fp16 or bf16").capture_default_str();
  app.add_option("--layout", options->layout,
                 "separate, gate_up, up_gate, interleaved_gate_up:B, interleaved_up_gate:B")
      .capture_default_str();
  app.add_option("--device", options->device, "auto, cpu or cuda").capture_default_str();
  app.add_option("--impl", options->implementation,
                 "Force this implementation, or one of its kernels (NAME:KERNEL), for the ops that have it");
  app.add_option("--seed", options->seed, "Of the data").capture_default_str();
  app.add_option("--chunk", options->chunk, "gatefold's mlp computes so many tokens at a time, 0: all at once")
      .capture_default_str();
  app.add_flag("--batch-invariant", options->batch_invariant,
               "By plans that give a row the same bits in any batch: implementations that don't are refused");
  app.add_flag("--roofline", options->roofline, "Compare with the device's bounds");
  app.add_option(
         "--seconds", options->seconds,
         "Begin no further model and number of tokens after so long, and write what was measured; 0: all of them")
      .capture_default_str();
  options->timing.add_to(app);
  options->output.add_to(app);
  return {app, [options] { return bench(*options); }};
}

}  // namespace gatefold::cli
