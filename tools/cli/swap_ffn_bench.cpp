#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "cli/backend.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/swap_ffn.hpp"
#include "cli/swap_ffn_gemms.hpp"
#include "cli/swap_ffn_job.hpp"
#include "cli/swap_ffn_unfused.hpp"
#include "cli/timing.hpp"

// The step's time beside the unfused one's, and where each of the two spends it.
namespace gatefold::cli {
namespace {

double flops_of(const SwapFfn& plan, std::int64_t batch) {
  double flops = 0.0;
  for (const gatefold_swap_ffn_pass_info& pass : plan.passes(batch)) flops += pass.flops;
  return flops;
}

double mlp_flops(const SwapFfnData& data) {
  const SwapFfnDesc& c = data.desc();
  return 6.0 * static_cast<double>(data.rows()) * static_cast<double>(c.hidden_size) *
         static_cast<double>(c.intermediate_size) * static_cast<double>(c.events * c.k_ffn);
}

SwapFfnSizes with_batch(SwapFfnSizes sizes, std::int64_t batch) {
  sizes.batch = batch;
  return sizes;
}

struct BenchOptions {
  SwapFfnSizes sizes;
  std::vector<std::int64_t> batches{1};
  TimingOptions timing;
  OutputOptions output;
};

// How a participant's row is made of its samples.
struct Way {
  Participant participant;
  bool whole_step = true;  // else the products of its MLPs alone
};

// On CUDA each step in a graph and as single launches; gemm, the line to beat, in a graph too.
std::vector<Way> ways_of(SwapFfnJob& job, const UnfusedSwapFfn& unfused, const SwapFfnGemms& gemms, Backend& backend) {
  const std::function<void()> step = [&job] { job.enqueue(); };
  const std::function<void()> unfused_step = [&unfused] { unfused.step(); };
  const std::function<void()> products = [&gemms] { gemms.enqueue(); };
  const auto call = [](const std::function<void()>& enqueue) { return [enqueue](std::int64_t) { enqueue(); }; };
  std::vector<Way> ways{{{"gatefold", call(backend.captured(step))}},
                        {{"unfused", call(backend.captured(unfused_step))}},
                        {{"gemm", call(backend.captured(products))}, false}};
  if (!backend.uses_host_memory()) {
    ways.push_back({{"gatefold-eager", call(step)}});
    ways.push_back({{"unfused-eager", call(unfused_step)}});
  }
  return ways;
}

// gemm: the MLPs' products alone, by the library's gemm.
void bench_batch(const BenchOptions& options, std::int64_t batch, Backend& backend, Progress& progress,
                 Report& report) {
  const SwapFfnSizes sizes = with_batch(options.sizes, batch);
  SwapFfnData data(sizes);
  SwapFfnData unfused_data(sizes);
  SwapFfnJob job(data, backend);
  const std::unique_ptr<UnfusedSwapFfn> unfused = make_unfused_swap_ffn(unfused_data, backend);
  const SwapFfnGemms gemms(data, backend);
  const double apart = apart_after_a_step(job, data, *unfused, backend);
  const std::vector<Way> ways = ways_of(job, *unfused, gemms, backend);
  std::vector<Participant> participants;
  for (const Way& way : ways) participants.push_back(way.participant);
  const std::vector<Samples> samples =
      time_in_rounds(backend, participants, options.timing,
                     [&](const std::string& what) { progress.show(fmt::format("B = {}: {}", batch, what)); });
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double seconds = median(samples[i]);
    const double flops = ways[i].whole_step ? flops_of(job.plan(), batch) : mlp_flops(data);
    Json row = sizes_of(data);
    row.update({{"provider", participants[i].name},
                {"time_us", seconds * 1e6},
                {"time_us_p10", quantile(samples[i], 0.1) * 1e6},
                {"time_us_p90", quantile(samples[i], 0.9) * 1e6},
                {"tokens_per_second", static_cast<double>(batch) / seconds},
                {"tflops", flops / seconds * 1e-12},
                {"ratio_vs_unfused", speed_ratio(samples[1], samples[i])},
                {"ratio_vs_gemm", speed_ratio(samples[2], samples[i])},
                {"relative_l2_to_unfused", i == 0 ? Json(apart) : Json(nullptr)}});
    report.rows.push_back(std::move(row));
  }
}

int bench(const BenchOptions& options) {
  options.timing.validate();
  options.output.validate();
  for (const std::int64_t batch : options.batches) {
    require_at_least("--batches", batch, 1);
    with_batch(options.sizes, batch).resolved();
  }
  const std::unique_ptr<Backend> backend = make_backend(options.sizes.resolved().device);
  Progress progress;
  Report report;
  for (const std::int64_t batch : options.batches) bench_batch(options, batch, *backend, progress, report);
  progress.clear();
  report.title = fmt::format("{}: {} rounds of {} ms", title_of(options.sizes.resolved()), options.timing.rounds,
                             options.timing.min_time_ms);
  report.columns = {{"batch", "B", plain_text},
                    {"provider", "provider", plain_text},
                    {"time_us", "time a step", time_text},
                    {"time_us_p10", "p10", time_text},
                    {"time_us_p90", "p90", time_text},
                    {"tokens_per_second", "tokens/s", number_text},
                    {"tflops", "TFLOP/s", number_text},
                    {"ratio_vs_unfused", "vs unfused", ratio_text},
                    {"ratio_vs_gemm", "vs gemm", ratio_text},
                    {"relative_l2_to_unfused", "delta from unfused", error_text}};
  report.notes = {"on cuda each in a CUDA graph, but for -eager: as single launches",
                  "gemm: the MLPs' products alone, without norms, activations, router, swaps or collapse",
                  "delta from unfused: relative L2 between the first step's results, which are the same computation"};
  report.context = base_context();
  report.context.update(backend->describe());
  options.output.emit(report);
  return 0;
}

}  // namespace

Command add_swap_ffn_bench(const App& parent) {
  const App app = parent.add_subcommand("bench", "The step's time beside the unfused one's and its products' alone");
  auto options = std::make_shared<BenchOptions>();
  options->sizes.add_to(app);
  app.remove_option("--batch");
  app.add_option("--batches", options->batches, "Sequences").delimiter(',').capture_default_str();
  options->timing.add_to(app);
  options->output.add_to(app);
  return {app, [options] { return bench(*options); }};
}

}  // namespace gatefold::cli
