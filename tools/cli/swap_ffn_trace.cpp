#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "cli/backend.hpp"
#include "cli/ncu_profile.hpp"
#include "cli/report.hpp"
#include "cli/swap_ffn.hpp"
#include "cli/swap_ffn_job.hpp"
#include "cli/swap_ffn_unfused.hpp"
#include "cli/timing.hpp"

// Where the step and the unfused one spend their time, pass by pass.
namespace gatefold::cli {
namespace {

// One line of a trace: a kind of pass, its launches put together.
struct Line {
  std::string path, name;
  std::int64_t launches = 0;
  std::int64_t rows = 0, columns = 0, depth = 0;
  double flops = 0.0, bytes = 0.0;
  Samples seconds;  // of all launches, one a step
  std::optional<KernelProfile> profile = {};
};

std::vector<Line> trace_fused(SwapFfnJob& job, const SwapFfnData& data, std::int64_t steps, Backend& backend) {
  std::vector<Line> lines;
  for (const gatefold_swap_ffn_pass_info& p : job.plan().passes(data.batch())) {
    lines.push_back({"fused", p.name, p.launches, p.rows, p.columns, p.depth, p.flops, p.bytes, {}});
  }
  std::vector<double> seconds(lines.size());
  for (std::int64_t step = -1; step < steps; ++step) {  // the first warms up
    job.enqueue(seconds.data());
    for (std::size_t i = 0; step >= 0 && i < lines.size(); ++i) lines[i].seconds.push_back(seconds[i]);
  }
  backend.run_profiled([&] { job.enqueue(); });
  std::erase_if(lines, [](const Line& line) { return line.launches == 0; });  // of another way to do the same
  return lines;
}

std::vector<Line> trace_unfused(const UnfusedSwapFfn& unfused, std::int64_t steps, Backend& backend) {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> places;
  for (const UnfusedPass& pass : unfused.passes()) {
    const auto [place, added] = places.try_emplace(pass.name, lines.size());
    if (added) lines.push_back({"unfused", pass.name, 0, pass.rows, pass.columns, pass.depth, 0.0, 0.0, {}});
    Line& line = lines[place->second];
    ++line.launches;
    line.flops += pass.flops;
    line.bytes += pass.bytes;
  }
  unfused.step();
  for (std::int64_t step = 0; step < steps; ++step) {
    for (Line& line : lines) line.seconds.push_back(0.0);
    for (const UnfusedPass& pass : unfused.passes()) {
      lines[places.at(pass.name)].seconds.back() += backend.seconds(pass.run);
    }
  }
  backend.run_profiled([&] { unfused.step(); });
  return lines;
}

// What Nsight Compute measured of one step, from a file; nothing of a path that it has no step of.
void add_profile(std::vector<Line>& lines, const std::vector<PassProfile>& profile, const std::string& file) {
  for (Line& line : lines) {
    const auto measured = std::ranges::find(profile, line.name, &PassProfile::pass);
    const std::int64_t kernels = measured == profile.end() ? 0 : measured->kernels;
    if (profile.empty() || (kernels == 0 && line.launches == 0)) continue;
    // A product may be several launches.
    if (kernels < line.launches || (line.depth == 0 && kernels > line.launches)) {
      checkpoint::throw_input_error("--ncu: ", file, ": ", line.path, " pass \"", line.name, "\": ", kernels,
                                    " kernels in a step, but ", line.launches,
                                    " launches here: another configuration?");
    }
    line.profile = measured->sum;
  }
}

Line total_of(const std::vector<Line>& lines) {
  Line total{lines.front().path, "total", 0, 0, 0, 0, 0.0, 0.0, Samples(lines.front().seconds.size())};
  for (const Line& line : lines) {
    if (line.profile) {
      if (!total.profile) total.profile.emplace();
      total.profile->add(*line.profile);
    }
    total.launches += line.launches;
    total.flops += line.flops;
    total.bytes += line.bytes;
    for (std::size_t i = 0; i < total.seconds.size(); ++i) total.seconds[i] += line.seconds[i];
  }
  return total;
}

Json row_of(const SwapFfnData& data, const Line& line, double total) {
  const double seconds = median(line.seconds);
  const std::string shape = line.rows == 0    ? ""
                            : line.depth == 0 ? fmt::format("{} x {}", line.rows, line.columns)
                                              : fmt::format("{} x {} x {}", line.rows, line.columns, line.depth);
  const bool timed = line.launches > 0 && seconds > 0.0;
  Json row = sizes_of(data);
  row.update({{"path", line.path},
              {"pass", line.name},
              {"launches", line.launches},
              {"shape", shape},
              {"gflop", line.flops * 1e-9},
              {"bytes", line.bytes},
              {"time_us", seconds * 1e6},
              {"share", seconds / total},
              {"gflops", timed ? Json(line.flops / seconds * 1e-9) : Json(nullptr)},
              {"gbps", timed ? Json(line.bytes / seconds * 1e-9) : Json(nullptr)}});
  return row;
}

void add_profile_fields(Json& row, const Line& line) {
  const auto field = [&](double KernelProfile::*metric) {
    const bool known = line.profile && std::isfinite((*line.profile).*metric);
    return known ? Json((*line.profile).*metric) : Json(nullptr);
  };
  row.update({{"dram_read_bytes", field(&KernelProfile::read_bytes)},
              {"dram_written_bytes", field(&KernelProfile::written_bytes)},
              {"dram_share", field(&KernelProfile::memory_share)},
              {"tensor_core_share", field(&KernelProfile::tensor_core_share)}});
}

void add_rows(Report& report, const SwapFfnData& data, const std::vector<Line>& lines, const Line& total,
              bool profiled) {
  const auto add = [&](const Line& line) {
    report.rows.push_back(row_of(data, line, median(total.seconds)));
    if (profiled) add_profile_fields(report.rows.back(), line);
  };
  std::ranges::for_each(lines, add);
  add(total);
}

std::vector<PassLaunch> launches_of(const UnfusedSwapFfn& unfused) {
  std::vector<PassLaunch> launches;
  for (const UnfusedPass& pass : unfused.passes()) launches.push_back({pass.name, pass.depth > 0});
  return launches;
}

struct TraceOptions {
  SwapFfnSizes sizes;
  std::int64_t steps = 5;
  std::string ncu;  // a file, or ""
  OutputOptions output;
};

int trace(const TraceOptions& options) {
  options.output.validate();
  options.output.expect_other_file("--ncu", options.ncu);
  require_at_least("--steps", options.steps, 1);
  const std::vector<KernelProfile> profile =
      options.ncu.empty() ? std::vector<KernelProfile>{} : read_ncu_csv(options.ncu);
  if (!profile.empty() && parse_swap_ffn_device(options.sizes.device) != GATEFOLD_DEVICE_CUDA) {
    checkpoint::throw_input_error("--ncu: kernels of cuda, but --device is ", options.sizes.device);
  }
  SwapFfnData data(options.sizes);
  SwapFfnData unfused_data(options.sizes);
  const std::unique_ptr<Backend> backend = make_backend(data.desc().device);
  SwapFfnJob job(data, *backend);
  const std::unique_ptr<UnfusedSwapFfn> unfused = make_unfused_swap_ffn(unfused_data, *backend);
  Report report;
  std::vector<Line> fused_lines = trace_fused(job, data, options.steps, *backend);
  std::vector<Line> unfused_lines = trace_unfused(*unfused, options.steps, *backend);
  const std::optional<StepProfiles> steps = profile_of_steps(profile, options.ncu);
  if (!profile.empty() && !steps) {
    add_profile(fused_lines, profile_of_fused(profile, options.ncu), options.ncu);
    add_profile(unfused_lines, profile_of_unfused(profile, launches_of(*unfused), options.ncu), options.ncu);
  }
  Line fused_total = total_of(fused_lines);
  Line unfused_total = total_of(unfused_lines);
  if (steps) {
    fused_total.profile = steps->fused;
    unfused_total.profile = steps->unfused;
  }
  add_rows(report, data, fused_lines, fused_total, !profile.empty());
  add_rows(report, data, unfused_lines, unfused_total, !profile.empty());
  report.title = fmt::format("B {}, {}: medians of {} steps", data.batch(), title_of(data.desc()), options.steps);
  report.columns = {{"path", "path", plain_text},         {"pass", "pass", plain_text},
                    {"launches", "launches", plain_text}, {"shape", "rows x columns x depth", plain_text},
                    {"gflop", "GFLOP", number_text},      {"bytes", "bytes", bytes_text},
                    {"time_us", "time", time_text},       {"share", "share", percent_text},
                    {"gflops", "GFLOP/s", number_text},   {"gbps", "GB/s", number_text}};
  report.notes = {
      "bytes: by the model that each launch reads its operands and writes its result once, and that every core swaps",
      fmt::format("fused {} launches and {}, unfused {} and {}: {:.2f} times as fast", fused_total.launches,
                  time_text(median(fused_total.seconds) * 1e6), unfused_total.launches,
                  time_text(median(unfused_total.seconds) * 1e6),
                  median(unfused_total.seconds) / median(fused_total.seconds))};
  if (!profile.empty()) {
    for (const Column& column : {Column{"dram_read_bytes", "DRAM reads", bytes_text},
                                 {"dram_written_bytes", "DRAM writes", bytes_text},
                                 {"dram_share", "of the DRAM", percent_text},
                                 {"tensor_core_share", "of the tensor cores", percent_text}}) {
      report.columns.push_back(column);
    }
    report.notes.push_back("DRAM and tensor cores: of one step, by Nsight Compute, from " + options.ncu);
  }
  report.context = base_context();
  report.context.update(backend->describe());
  options.output.emit(report);
  return 0;
}

}  // namespace

Command add_swap_ffn_trace(const App& parent) {
  const App app = parent.add_subcommand("trace", "Where a step's time goes, fused and unfused, pass by pass");
  auto options = std::make_shared<TraceOptions>();
  options->sizes.add_to(app);
  app.add_option("--steps", options->steps, "Steps that are timed").capture_default_str();
  app.add_option(
      "--ncu", options->ncu,
      "A CSV of Nsight Compute with a step's kernels (ncu --csv --page raw), or with its whole steps (--replay-mode "
      "app-range), whose DRAM bytes and utilisation join the rows");
  options->output.add_to(app);
  return {app, [options] { return trace(*options); }};
}

}  // namespace gatefold::cli
