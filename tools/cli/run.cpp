#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/memory_use.hpp"
#include "cli/run_job.hpp"
#include "cli/standard_streams.hpp"

namespace gatefold::cli {
namespace {

constexpr const char* help =
    "The ways to h = act(x . w_gate^T) * (x . w_up^T), in one process, by turns:\n"
    "  unfused      two products, then one pass for the activation and one for the multiplication\n"
    "  act_and_mul  two products, then one pass for both\n"
    "  gemm_gated   the gate product, then the up product that multiplies as it goes\n"
    "  gate_up      all in one\n"
    "then down_proj, y = h . w_down^T, and mlp: gate_up and down_proj, one after the other.\n"
    "Columns: intermediates are the bytes written to memory besides h; vs unfused > 1 means faster, the median over\n"
    "rounds; error is ||h - truth|| / ||truth|| against double precision (down_proj: y from this h; mlp: y from x, "
    "with --whole-block); h/bound is the\n"
    "worst |h - truth| relative to a bound that allows for one rounding of h, so the ways that round gate and up too\n"
    "are beyond it; ops/bound is the worst of the way's own ops against their own bounds from their own inputs:\n"
    "above 1 is an error, and the exit code is 1.";

std::string model_name(const RunOptions& options) {
  const std::filesystem::path path = std::filesystem::absolute(options.checkpoint).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void validate(const RunOptions& options) {
  options.table.validate();
  options.table.expect_text("the checkpoint's name", model_name(options));
  options.timing.validate();
  require_folder_of("--output", options.output);
  require_other_file("--output", options.output, "the table's", options.table.file.empty() ? "-" : options.table.file);
  require_at_least("--layer", options.layer, 0);
  if (options.check_rows) require_at_least("--check-rows", *options.check_rows, 1);
  if (options.tokens) require_at_least("--tokens", *options.tokens, 0);
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json row_of(const RunOptions& options, const RunJob& job, const Line& line, const Samples* unfused) {
  Json row{{"way", line.name}};
  row.update(result_row(line.way, job.block(), model_name(options), line.samples, {unfused, nullptr}));
  row["relative_l2"] = or_null(line.accuracy.relative_l2);
  row["h_bound_ratio"] = or_null(line.accuracy.h_bound_ratio);
  row["max_bound_ratio"] = line.accuracy.max_bound_ratio;
  row["violations"] = line.accuracy.violations;
  row["peak_resident_bytes"] = peak_resident_bytes();
  return row;
}

std::vector<Json> rows_of(const RunOptions& options, const RunJob& job) {
  std::vector<Json> rows;
  const Samples& unfused = job.lines_to_h().front().samples;
  for (const Line& line : job.lines_to_h()) rows.push_back(row_of(options, job, line, &unfused));
  rows.push_back(row_of(options, job, job.down(), nullptr));
  Samples unfused_block = unfused;
  for (std::size_t i = 0; i < unfused_block.size(); ++i) unfused_block[i] += job.down().samples[i];
  rows.push_back(row_of(options, job, job.mlp(), &unfused_block));
  return rows;
}

Json context_of(const RunOptions& options, const RunJob& job) {
  const Block& block = job.block();
  Json context = base_context();
  context.update(job.describe_device());
  context["checkpoint"] = options.checkpoint;
  context["layer"] = options.layer;
  context["input"] = options.input.empty() ? Json(nullptr) : Json(options.input);
  context["seed"] = options.input.empty() ? Json(job.seed()) : Json(nullptr);
  context["rounds"] = options.timing.rounds;
  context["min_time_ms"] = options.timing.min_time_ms;
  context["checked_rows"] = job.checked_rows().count;
  context["biases"] = block.biases.any() ? Json(name_of(block.biases)) : Json(nullptr);
  context["mlp_at_once"] = options.whole_block;
  context["weight_bytes"] = job.weight_bytes();
  context["activation_bytes"] = 2 * block.x_bytes() + block.h_bytes();  // x, h, y
  context["peak_resident_bytes"] = peak_resident_bytes();
  return context;
}

Report report_of(const RunOptions& options, const RunJob& job) {
  const Block& block = job.block();
  Report report;
  report.rows = rows_of(options, job);
  report.context = context_of(options, job);
  const std::string biases = block.biases.any() ? fmt::format(", biases {}", name_of(block.biases)) : "";
  report.title =
      fmt::format("{}, layer {}: {} tokens, {} x {}, {}, {}, {}{}, on {}", model_name(options), options.layer,
                  block.tokens, block.hidden_size, block.intermediate_size, name_of(block.dtype),
                  name_of(block.activation), name_of(block.layout), biases, name_of(block.device));
  report.columns = {{"way", "way", plain_text},
                    {"implementation", "implementation", plain_text},
                    {"time_us", "time", time_text},
                    {"tflops", "TFLOP/s", number_text},
                    {"gbps", "GB/s", number_text},
                    {"ratio_vs_unfused", "vs unfused", ratio_text},
                    {"bytes_intermediate", "intermediates", bytes_text},
                    {"relative_l2", "error", error_text},
                    {"h_bound_ratio", "h/bound", ratio_text},
                    {"max_bound_ratio", "ops/bound", ratio_text}};
  const Json& context = report.context;
  if (options.input.empty()) report.notes.push_back(fmt::format("x: random normal, seed {}", job.seed()));
  report.notes.push_back(
      fmt::format("checked: {} of {} rows in double precision", job.checked_rows().count, block.tokens));
  if (!options.whole_block) {
    report.notes.emplace_back("mlp: gate_up and down_proj, timed apart (--whole-block runs them as one op)");
  }
  report.notes.push_back(fmt::format("peak resident memory: {}; weights {}, x + h + y {}",
                                     bytes_text(context["peak_resident_bytes"]), bytes_text(context["weight_bytes"]),
                                     bytes_text(context["activation_bytes"])));
  return report;
}

bool print_failures(const RunJob& job) {
  bool failed = false;
  const auto print = [&failed](const Line& line) {
    if (line.accuracy.passed()) return;
    print_error(line.accuracy.failure);
    failed = true;
  };
  for (const Line& line : job.lines_to_h()) print(line);
  print(job.down());
  print(job.mlp());
  return failed;
}

int run(const RunOptions& options) {
  validate(options);
  RunJob job(options);
  job.run();
  const bool failed = print_failures(job);
  if (!failed && !options.output.empty()) job.write_output(options.output);
  options.table.emit(report_of(options, job));
  return failed ? 1 : 0;
}

}  // namespace

Command add_run(const App& root) {
  const App app = root.add_subcommand("run", "Compute one layer of a checkpoint every way, check and time it");
  auto options = std::make_shared<RunOptions>();
  app.footer(help);
  app.add_option("checkpoint", options->checkpoint,
                 "A .safetensors file, or a folder with model.safetensors or its index")
      .required();
  app.add_option("--layer", options->layer, "Which layer").capture_default_str();
  app.add_option("--tokens", options->tokens, "Rows of x; default: those of --input, or 256");
  app.add_option("--input", options->input, "A .safetensors file with x [tokens, hidden_size]; default: random normal");
  app.add_option("--output", options->output, "Write h and y to this .safetensors file; -: stdout");
  app.add_option("--activation", options->activation, "Default: what the checkpoint's config.json says");
  app.add_option("--device", options->device, "auto, cpu or cuda").capture_default_str();
  app.add_option("--impl", options->implementation,
                 "Force this implementation, or one of its kernels (NAME:KERNEL), for the ops that have it");
  app.add_option("--seed", options->seed, "Of the random x; default: a new one");
  app.add_option(
      "--check-rows", options->check_rows,
      "Rows to check at most, evenly spaced, the last among them; default: as many as take seconds, 16 at least");
  app.add_flag("--whole-block", options->whole_block, "Time mlp as one op, with all weights resident at once");
  options->timing.add_to(app);
  options->table.add_to(app, "--report");
  return {app, [options] { return run(*options); }};
}

}  // namespace gatefold::cli
