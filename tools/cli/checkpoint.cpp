#include <fmt/core.h>

#include <memory>

#include "checkpoint/generate.hpp"
#include "checkpoint/input_error.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/standard_streams.hpp"

namespace gatefold::cli {
namespace {

struct Options {
  ShapeOptions shape;
  std::int64_t layers = 1;
  std::string dtype = "bf16";
  std::string layout = "separate";
  std::string activation;
  std::uint64_t seed = 0;
  bool mlp_bias = false;
  bool sharded = false;
  bool overwrite = false;
  std::string folder;
};

int write_checkpoint(const Options& options) {
  if (options.folder == "-") checkpoint::throw_input_error("--output: -: a checkpoint is a folder, stdout is none");
  require_at_least("--layers", options.layers, 1);
  const Shape shape = resolve(options.shape);
  const Layout layout = parse_layout(options.layout);
  if (layout.kind() != GATEFOLD_LAYOUT_SEPARATE && layout.kind() != GATEFOLD_LAYOUT_GATE_UP) {
    checkpoint::throw_input_error("--layout: \"", options.layout, "\" is not one of separate, gate_up");
  }
  Progress progress;
  checkpoint::GenerateOptions generate{.hidden_size = shape.hidden_size,
                                       .intermediate_size = shape.intermediate_size,
                                       .layers = options.layers,
                                       .dtype = parse_dtype(options.dtype),
                                       .layout = layout,
                                       .mlp_bias = options.mlp_bias,
                                       .sharded = options.sharded,
                                       .overwrite = options.overwrite,
                                       .seed = options.seed,
                                       .progress = {}};
  generate.activation = options.activation.empty() ? shape.activation : parse_activation(options.activation);
  generate.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.show(fmt::format("writing {}: {} of {}", options.folder, bytes_text(done), bytes_text(total)));
  };
  checkpoint::generate_checkpoint(options.folder, generate);
  progress.clear();
  print(fmt::format("{}: {} layer{} of {} x {} ({}, {}, {}), seed {}\n", options.folder, options.layers,
                    options.layers == 1 ? "" : "s", shape.hidden_size, shape.intermediate_size,
                    shape.model.empty() ? "own sizes" : shape.model, name_of(generate.dtype), name_of(layout),
                    options.seed));
  return 0;
}

}  // namespace

Command add_checkpoint(const App& root) {
  const App app = root.add_subcommand(
      "checkpoint", "Write a Hugging Face style checkpoint of a model's MLPs with random (Kaiming-uniform) weights");
  auto options = std::make_shared<Options>();
  options->shape.add_to(app);
  app.add_option("--layers", options->layers, "How many layers").capture_default_str();
  app.add_option("--dtype", options->dtype, "fp32, fp16 or bf16").capture_default_str();
  app.add_option("--layout", options->layout, "separate (gate_proj, up_proj) or gate_up (gate_up_proj)")
      .capture_default_str();
  app.add_option("--activation", options->activation, "Default: the model's, or silu");
  app.add_option("--seed", options->seed, "The same seed gives the same bytes").capture_default_str();
  app.add_flag("--mlp-bias", options->mlp_bias, "A bias beside each weight, as a config.json's mlp_bias says");
  app.add_flag("--sharded", options->sharded, "One file per layer and an index");
  app.add_flag("--overwrite", options->overwrite, "Into a folder that holds something already");
  app.add_option("--output", options->folder, "The folder").required();
  return {app, [options] { return write_checkpoint(*options); }};
}

}  // namespace gatefold::cli
