#include "cli/swap_ffn.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/swap_ffn_job.hpp"

// swap-ffn, and its subcommands that read and write files.
namespace gatefold::cli {
namespace {

struct RunOptions {
  SwapFfnFiles files;
  std::string output;
  std::int64_t steps = 1;
  OutputOptions table;
};

int run(const RunOptions& options) {
  require_at_least("--steps", options.steps, 1);
  options.table.validate();
  require_folder_of("--output", options.output);
  require_other_file("--output", options.output, "the table's", options.table.file.empty() ? "-" : options.table.file);
  for (const auto& [what, file] : options.files.by_option()) {
    require_other_file("--output", options.output, what, file);
    options.table.expect_other_file(what, file);
  }
  SwapFfnData data(options.files);
  const std::unique_ptr<Backend> backend = make_backend(data.desc().device);
  SwapFfnJob job(data, *backend);
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < options.steps; ++step) job.enqueue();
  backend->synchronise();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  job.download();

  const SwapFfnDesc& desc = data.desc();
  checkpoint::write_safetensors(
      options.output,
      {checkpoint::make_tensor("delta", desc.dtype, {data.batch(), desc.hidden_size}, job.delta.data()),
       checkpoint::make_tensor("ram", desc.dtype, {data.batch(), desc.cores, GATEFOLD_SWAP_FFN_BANKS, desc.hidden_size},
                               data.ram.data()),
       stream_map_tensor(data)});

  Report report;
  report.title = title_of(desc);
  const auto steps = static_cast<double>(options.steps);
  Json row = sizes_of(data);
  row.update({{"steps", options.steps},
              {"time_us", seconds / steps * 1e6},
              {"tokens_per_second", static_cast<double>(data.batch()) * steps / seconds}});
  report.rows.push_back(std::move(row));
  report.columns = {{"batch", "B", plain_text},
                    {"steps", "steps", plain_text},
                    {"time_us", "time a step", time_text},
                    {"tokens_per_second", "tokens/s", number_text}};
  report.context = base_context();
  options.table.emit(report);
  return 0;
}

struct InitOptions {
  SwapFfnSizes sizes;
  std::string weights, state, input;
};

int init(const InitOptions& options) {
  require_folder_of("--weights", options.weights);
  require_folder_of("--state", options.state);
  require_folder_of("--input", options.input);
  require_other_file("--state", options.state, "--weights", options.weights);
  require_other_file("--input", options.input, "--weights", options.weights);
  require_other_file("--input", options.input, "--state", options.state);
  SwapFfnData(options.sizes).write(options.weights, options.state, options.input);
  return 0;
}

}  // namespace

Command add_swap_ffn_run(const App& parent) {
  const App app = parent.add_subcommand("run", "Steps on tensors from files");
  auto options = std::make_shared<RunOptions>();
  options->files.add_to(app, true);
  app.add_option("--output", options->output, "Safetensors file for delta of the last step, ram and stream_map")
      .required();
  app.add_option("--steps", options->steps, "Steps, each on the same x").capture_default_str();
  options->table.add_to(app, "--table");
  return {app, [options] { return run(*options); }};
}

Command add_swap_ffn_init(const App& parent) {
  const App app = parent.add_subcommand("init", "Writes random weights, state and input");
  auto options = std::make_shared<InitOptions>();
  app.add_option("--weights", options->weights, "Safetensors file to write").required();
  app.add_option("--state", options->state, "Safetensors file to write").required();
  app.add_option("--input", options->input, "Safetensors file to write").required();
  options->sizes.add_to(app);
  return {app, [options] { return init(*options); }};
}

Command add_swap_ffn(const App& root) {
  const App app = root.add_subcommand("swap-ffn", "A recurrent-memory decode step built on the gated MLP");
  app.require_subcommand();
  auto commands = std::make_shared<std::vector<Command>>(
      std::vector<Command>{add_swap_ffn_run(app), add_swap_ffn_init(app), add_swap_ffn_verify(app),
                           add_swap_ffn_bench(app), add_swap_ffn_trace(app)});
  return {app, [commands] {
            return std::ranges::find_if(*commands, [](const Command& c) { return c.app.parsed(); })->run();
          }};
}

}  // namespace gatefold::cli
