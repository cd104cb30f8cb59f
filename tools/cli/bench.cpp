#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "cli/bench_data.hpp"
#include "cli/block_memory.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/roofline.hpp"
#include "cli/way.hpp"

// Time over ops, models, tokens and providers.
namespace gatefold::cli {
namespace {

struct Options {
  std::vector<std::string> ops{"gate_up"};
  std::vector<std::string> models;
  std::int64_t tp = 1;
  std::vector<std::int64_t> tokens;
  std::vector<std::string> providers;
  std::string dtype = "bf16";
  std::string layout = "separate";
  std::string device = "auto";
  std::string implementation;
  std::uint64_t seed = 0;
  bool roofline = false;
  TimingOptions timing;
  OutputOptions output;
};

constexpr const char* help =
    "Providers of gate_up, gemm_gated and mlp: gatefold; unfused (products, then act_and_mul); eager (products, then "
    "an\n"
    "activation pass and a multiplication pass); gemm-only (the products, with no activation). The\n"
    "products are cuBLASLt's on a GPU (of its heuristics' top candidates the fastest), the library's own gemm on a "
    "CPU;\n"
    "gemm, on a GPU: the library's own products, with no activation. Of act_and_mul: gatefold, eager, and copy (a copy "
    "that moves as many bytes).\n"
    "memory: what a provider alone takes beside x and the weights, measured.\n"
    "Providers take turns in rounds, in a new order each, and on a GPU each first runs as long untimed; times are "
    "medians of the rounds, ratios the medians of the rounds' ratios, > 1\n"
    "faster than the baseline. Random normal data; weights rotate past the last-level cache.\n"
    "--roofline adds bytes, operations, their ratio, what bounds them on this device (its copy bandwidth and its\n"
    "largest products, measured first) and the fraction of that bound which was reached.";

// What is measured, checked before anything is.
struct Plan {
  gatefold_device device{};
  gatefold_dtype dtype{};
  Layout layout = Layout::separate();
  std::vector<gatefold_op> ops{};
  std::vector<Shape> shapes{};
  std::vector<const Provider*> providers{};
};

void fill_in_defaults(Options& options, gatefold_device device) {
  const bool cpu = device == GATEFOLD_DEVICE_CPU;
  using Names = std::vector<std::string>;
  using Sizes = std::vector<std::int64_t>;
  if (options.models.empty()) {
    options.models = cpu ? Names{"smollm2-135m", "llama3.2-1b"} : Names{"llama3.1-8b", "llama3.1-70b", "llama3.1-405b"};
  }
  if (options.tokens.empty()) {
    options.tokens = cpu ? Sizes{1, 64, 512} : Sizes{512, 1024, 2048, 4096, 8192, 16384, 32768, 49152, 65536};
  }
}

Block block_of(const Plan& plan, const Options& options, const Shape& shape, std::int64_t tokens) {
  Block block{.device = plan.device,
              .dtype = plan.dtype,
              .layout = plan.layout,
              .activation = shape.activation,
              .hidden_size = shape.hidden_size,
              .intermediate_size = shape.intermediate_size,
              .tokens = tokens,
              .implementation = options.implementation};
  require_addressable(block);
  return block;
}

Plan plan_of(Options& options) {
  options.output.validate();
  options.timing.validate();
  Plan plan{.device = parse_present_device(options.device),
            .dtype = parse_dtype(options.dtype),
            .layout = parse_layout(options.layout)};
  fill_in_defaults(options, plan.device);
  require_known_implementation(plan.device, options.implementation);
  for (const std::string& op : options.ops) plan.ops.push_back(parse_op(op));
  for (const std::string& model : options.models) {
    plan.shapes.push_back(shape_of(checkpoint::find_preset(model), options.tp));
  }
  for (const std::string& name : options.providers) plan.providers.push_back(&find_provider(plan.device, name));
  if (plan.providers.empty()) {
    for (const Provider& provider : providers(plan.device)) plan.providers.push_back(&provider);
  }
  for (const std::int64_t tokens : options.tokens) {
    require_at_least("--tokens", tokens, 1);
    for (const Shape& shape : plan.shapes) block_of(plan, options, shape, tokens);
  }
  return plan;
}

class Bench {
 public:
  Bench(const Options& options, const Plan& plan)
      : options_(options), plan_(plan), backend_(make_backend(plan.device)) {}

  std::vector<Json> run() {
    if (options_.roofline) {
      progress_.show("measuring the device's peaks");
      peaks_ = measure_peaks(*backend_, plan_.dtype, options_.timing);
    }
    for (const gatefold_op op : plan_.ops) {
      for (const Shape& shape : plan_.shapes) run_model(op, shape);
    }
    progress_.clear();
    return std::move(rows_);
  }

  Json context() const {
    Json context = base_context();
    context.update(backend_->describe());
    context["rounds"] = options_.timing.rounds;
    context["min_time_ms"] = options_.timing.min_time_ms;
    context["seed"] = options_.seed;
    if (options_.roofline) {
      context["peak_gbps"] = peaks_.bytes_per_second * 1e-9;
      context["peak_tflops"] = peaks_.flops_per_second * 1e-12;
    }
    return context;
  }

 private:
  void run_model(gatefold_op op, const Shape& shape) {
    std::optional<RotatingWeights> weights;
    if (op != GATEFOLD_OP_ACT_AND_MUL) {
      progress_.show("drawing the weights of " + shape.model);
      weights.emplace(*backend_, block_of(plan_, options_, shape, 0), op == GATEFOLD_OP_MLP, options_.seed);
    }
    for (const std::int64_t tokens : options_.tokens) {
      run_cell(op, shape, block_of(plan_, options_, shape, tokens), weights ? &*weights : nullptr);
    }
  }

  void run_cell(gatefold_op op, const Shape& shape, const Block& block, const RotatingWeights* weights) {
    std::vector<Way> ways;
    for (const Provider* provider : plan_.providers) {
      if (auto way = provider->make(op, block)) ways.push_back(std::move(*way));
    }
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
    const bool stores_products = like.provider != "gatefold";
    const std::size_t before = backend_->memory_in_use();
    const Way way = *find_provider(plan_.device, like.provider).make(like.op, block);
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
      if (ways[i].op == GATEFOLD_OP_ACT_AND_MUL) {
        for (const char* baseline : {"eager", "copy"}) {
          const Samples* theirs = samples_of(baseline);
          row[std::string("ratio_vs_") + baseline] =
              theirs == nullptr ? Json(nullptr) : Json(speed_ratio(*theirs, samples[i]));
        }
      }
      if (options_.roofline) add_roofline(row, ways[i].cost, peaks_);
      rows_.push_back(std::move(row));
    }
  }

  const Options& options_;
  const Plan& plan_;
  std::unique_ptr<Backend> backend_;
  Peaks peaks_;
  Progress progress_;
  std::vector<Json> rows_;
};

std::vector<Column> columns_of(const Options& options, const Plan& plan) {
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
  if (options.roofline) {
    columns.push_back({"bytes", "bytes", bytes_text});
    columns.push_back({"intensity", "flop/byte", number_text});
    columns.push_back({"bound", "bound", plain_text});
    columns.push_back({"bound_time_us", "time at bound", time_text});
    columns.push_back({"fraction_of_bound", "reached", percent_text});
  }
  return columns;
}

int bench(Options options) {
  const Plan plan = plan_of(options);
  Bench job(options, plan);
  Report report;
  report.rows = job.run();
  report.context = job.context();
  if (report.rows.empty()) {
    checkpoint::throw_input_error("bench: none of the providers asked for computes ", options.ops.front(),
                                  " with layout ", options.layout);
  }
  report.columns = columns_of(options, plan);
  report.title = fmt::format("{}, {}, on {}: {} rounds of {} ms", name_of(plan.dtype), name_of(plan.layout),
                             name_of(plan.device), options.timing.rounds, options.timing.min_time_ms);
  if (options.roofline) {
    report.notes.push_back(fmt::format("peaks measured here: copy {:.1f} GB/s, product {:.3f} TFLOP/s",
                                       report.context["peak_gbps"].get<double>(),
                                       report.context["peak_tflops"].get<double>()));
  }
  options.output.emit(report);
  return 0;
}

}  // namespace

Command add_bench(CLI::App& root) {
  CLI::App* app = root.add_subcommand("bench", "Time over ops, models, tokens and providers");
  auto options = std::make_shared<Options>();
  app->footer(help);
  app->add_option("ops", options->ops, "act_and_mul, gemm, gemm_gated, gate_up, mlp")->capture_default_str();
  app->add_option("--model", options->models, "Presets; default: small ones on a CPU, Llama 3.1 on a GPU")
      ->delimiter(',');
  app->add_option("--tp", options->tp, "Tensor parallelism: divides the intermediate size")->capture_default_str();
  app->add_option("--tokens", options->tokens, "Numbers of tokens; default: 1,64,512 on a CPU, 512 ... 65536 on a GPU")
      ->delimiter(',');
  app->add_option("--provider", options->providers, "Default: all of the device's")->delimiter(',');
  app->add_option("--dtype", options->dtype, "fp32, fp16 or bf16")->capture_default_str();
  app->add_option("--layout", options->layout,
                  "separate, gate_up, up_gate, interleaved_gate_up:B, interleaved_up_gate:B")
      ->capture_default_str();
  app->add_option("--device", options->device, "auto, cpu or cuda")->capture_default_str();
  app->add_option("--impl", options->implementation, "Force this implementation for the ops that have one of the name");
  app->add_option("--seed", options->seed, "Of the data")->capture_default_str();
  app->add_flag("--roofline", options->roofline, "Compare with the device's bounds");
  options->timing.add_to(*app);
  options->output.add_to(*app);
  return {app, [options] { return bench(*options); }};
}

}  // namespace gatefold::cli
