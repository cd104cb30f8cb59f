#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "cli/element.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/standard_streams.hpp"
#include "cli/swap_ffn.hpp"
#include "cli/swap_ffn_job.hpp"

// Steps against the truth in double precision, one event at a time from the step's own states; and beside them the
// reference's own trajectory, whose state is never rounded.
namespace gatefold::cli {
namespace {

constexpr auto help =
    "Every decision whose margin exceeds the bound of rounding must be the truth's, every value within its bound, and "
    "ram and stream_map must be what the decisions make of them. `other path`: cores that have decided otherwise than "
    "the reference since the first step, which near a threshold is nobody's fault.";

struct Options {
  SwapFfnFiles files;
  SwapFfnSizes sizes;
  std::int64_t steps = 20;
  bool dtype_given = false;  // else files keep theirs
  bool whole = true;
  OutputOptions output;
};

// The reference's trajectory from the same start.
class Trajectory {
 public:
  explicit Trajectory(const SwapFfnData& data)
      : map_(data.stream_map),
        delta_(static_cast<std::size_t>(data.batch() * data.desc().hidden_size)),
        decisions_(static_cast<std::size_t>(data.desc().events * data.rows())),
        departed_(map_.size()) {
    with_element(data.desc().dtype, [&](auto element) {
      const auto* values = reinterpret_cast<const typename decltype(element)::Stored*>(data.ram.data());
      const std::size_t count = data.ram.size() / sizeof *values;
      for (std::size_t i = 0; i < count; ++i) ram_.push_back(static_cast<double>(element.load(values[i])));
    });
  }

  // One step; how many cores have left its path by then.
  std::int64_t step(const SwapFfnData& data, const std::vector<std::uint8_t>& decisions) {
    const gatefold_swap_ffn_desc desc = data.desc().c_desc();
    const gatefold_swap_ffn_weights weights = data.weights();
    gatefold_swap_ffn_reference_args args{};
    args.struct_size = sizeof args;
    args.batch = data.batch();
    args.x = data.x.data();
    args.ram = ram_.data();
    args.stream_map = map_.data();
    args.delta = delta_.data();
    args.decisions = decisions_.data();
    throw_on_error(gatefold_swap_ffn_reference(&desc, &weights, &args));
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      const bool swap = decisions[i] >= 4;
      const bool same = swap == (decisions_[i] >= 4) && (!swap || decisions[i] == decisions_[i]);
      if (!same) departed_[i % departed_.size()] = 1;
    }
    return std::ranges::count(departed_, 1);
  }

 private:
  std::vector<double> ram_;
  std::vector<std::uint8_t> map_;
  std::vector<double> delta_;
  std::vector<std::uint8_t> decisions_;
  std::vector<std::uint8_t> departed_;
};

gatefold_swap_ffn_report checked_step(SwapFfnJob& job, SwapFfnData& data, Bytes& states,
                                      std::vector<std::uint8_t>& decisions) {
  const Bytes ram = data.ram;
  const std::vector<std::uint8_t> map = data.stream_map;
  job.step({.states = states.data(), .decisions = decisions.data()});
  gatefold_swap_ffn_check_args args{};
  args.struct_size = sizeof args;
  args.batch = data.batch();
  args.x = data.x.data();
  args.ram_before = ram.data();
  args.stream_map_before = map.data();
  args.ram = data.ram.data();
  args.stream_map = data.stream_map.data();
  args.delta = job.delta.data();
  args.states = states.data();
  args.decisions = decisions.data();
  const gatefold_swap_ffn_desc desc = data.desc().c_desc();
  const gatefold_swap_ffn_weights weights = data.weights();
  gatefold_swap_ffn_report report{};
  throw_on_error(gatefold_swap_ffn_check(&desc, &weights, &args, GATEFOLD_DATA_ANY, &report));
  return report;
}

bool is_wrong(const gatefold_swap_ffn_report& r) { return r.wrong_decisions + r.wrong_moves + r.violations > 0; }

SwapFfnData data_of(const Options& options) {
  const int given = static_cast<int>(!options.files.weights.empty()) + static_cast<int>(!options.files.state.empty()) +
                    static_cast<int>(!options.files.input.empty());
  if (given != 0 && given != 3) {
    checkpoint::throw_input_error("--weights, --state and --input: ", given, " of 3 files were given");
  }
  if (given == 0) return SwapFfnData(options.sizes);
  SwapFfnFiles files = options.files;
  files.events = options.sizes.desc.events;
  files.k_ffn = options.sizes.desc.k_ffn;
  files.eps = options.sizes.desc.eps;
  files.device = options.sizes.device;
  files.impl = options.sizes.impl;
  if (options.dtype_given) files.dtype = options.sizes.dtype;
  return SwapFfnData(files);
}

int verify(const Options& options) {
  options.output.validate();
  require_at_least("--steps", options.steps, 1);
  for (const auto& [what, file] : options.files.by_option()) options.output.expect_other_file(what, file);
  SwapFfnData data = data_of(options);
  const SwapFfnDesc& desc = data.desc();
  const std::unique_ptr<Backend> backend = make_backend(desc.device);
  SwapFfnJob job(data, *backend);
  Trajectory reference(data);
  Bytes states(
      static_cast<std::size_t>((1 + desc.events * desc.k_ffn) * data.rows() * desc.hidden_size * size_of(desc.dtype)));
  std::vector<std::uint8_t> decisions(static_cast<std::size_t>(desc.events * data.rows()));
  Report report;
  Progress progress;
  bool failed = false;
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    progress.show(fmt::format("step {} of {}", step, options.steps));
    const gatefold_swap_ffn_report r = checked_step(job, data, states, decisions);
    const std::int64_t departed = options.whole ? reference.step(data, decisions) : 0;
    failed = failed || is_wrong(r);
    Json row = sizes_of(data);
    row.update({{"step", step},
                {"decisions", r.decisions},
                {"undecided", r.undecided},
                {"undecided_against", r.undecided_against},
                {"wrong_decisions", r.wrong_decisions},
                {"wrong_moves", r.wrong_moves},
                {"violations", r.violations},
                {"max_bound_ratio", r.max_bound_ratio},
                {"max_abs", r.max_abs},
                {"relative_l2", r.relative_l2},
                {"cores_on_another_path", options.whole ? Json(departed) : Json(nullptr)}});
    report.rows.push_back(std::move(row));
  }
  progress.clear();
  report.title = fmt::format("B {}, {}", data.batch(), title_of(desc));
  report.columns = {{"step", "step", plain_text},
                    {"decisions", "decisions", plain_text},
                    {"undecided", "undecided", plain_text},
                    {"undecided_against", "against the truth", plain_text},
                    {"wrong_decisions", "wrong", plain_text},
                    {"wrong_moves", "moved wrong", plain_text},
                    {"violations", "violations", plain_text},
                    {"max_bound_ratio", "error/bound", ratio_text},
                    {"relative_l2", "relative L2", error_text},
                    {"cores_on_another_path", "other path", plain_text}};
  report.context = base_context();
  options.output.emit(report);
  if (failed) print_error("swap-ffn verify: values, decisions or moves are wrong; the table counts them");
  return failed ? 1 : 0;
}

}  // namespace

Command add_swap_ffn_verify(const App& parent) {
  const App app = parent.add_subcommand("verify", "Steps against the reference in double precision");
  auto options = std::make_shared<Options>();
  options->sizes.desc.hidden_size = 256;
  options->sizes.desc.intermediate_size = 1024;
  options->sizes.desc.cores = 64;
  app.footer(help);
  options->sizes.add_to(app);
  const Option weights =
      app.add_option("--weights", options->files.weights, "With --state and --input: files in place of random data");
  for (const char* name : SwapFfnSizes::of_random_data) weights.excludes(app.option(name));  // the tensors have sizes
  app.add_option("--state", options->files.state, "Safetensors file");
  app.add_option("--input", options->files.input, "Safetensors file");
  app.add_option("--steps", options->steps, "Steps").capture_default_str();
  app.add_flag("!--events-only", options->whole, "Leave out the reference's own trajectory");
  options->output.add_to(app);
  return {app, [app, options] {
            options->dtype_given = app.given("--dtype");
            return verify(*options);
          }};
}

}  // namespace gatefold::cli
