#include <fmt/core.h>

#include <memory>
#include <vector>

#include "cli/block.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"

namespace gatefold::cli {
namespace {

struct Options {
  std::string op = "gate_up";
  std::string dtype = "bf16";
  std::string layout = "separate";
  std::string activation;
  std::string device = "auto";
  std::string implementation;
  std::vector<std::string> biases;
  bool batch_invariant = false;
  ShapeOptions shape;
  std::vector<std::int64_t> tokens{1, 64, 512, 8192};
  OutputOptions output;
};

Desc describe(const Options& options, const Shape& shape) {
  Desc desc{.op = parse_op(options.op), .dtype = parse_dtype(options.dtype), .device = parse_device(options.device)};
  const bool one_weight = desc.op == GATEFOLD_OP_GEMM || desc.op == GATEFOLD_OP_GEMM_GATED;
  const Layout layout = parse_layout(options.layout);
  if (!one_weight) desc.layout = layout;
  const Activation activation = options.activation.empty() ? shape.activation : parse_activation(options.activation);
  if (desc.op != GATEFOLD_OP_GEMM) desc.activation = activation;
  desc.hidden_size = desc.op == GATEFOLD_OP_ACT_AND_MUL ? 0 : shape.hidden_size;
  desc.intermediate_size = shape.intermediate_size;
  desc.implementation = options.implementation;
  desc.biases = parse_biases(options.biases);
  desc.batch_invariant = options.batch_invariant;
  return desc;
}

Json describe(const Desc& desc, const Shape& shape) {
  return {{"op", name_of(desc.op)},
          {"dtype", name_of(desc.dtype)},
          {"device", name_of(desc.device)},
          {"layout", desc.layout ? Json(name_of(*desc.layout)) : Json(nullptr)},
          {"activation", desc.activation ? Json(name_of(*desc.activation)) : Json(nullptr)},
          {"model", shape.model.empty() ? Json(nullptr) : Json(shape.model)},
          {"hidden_size", desc.hidden_size},
          {"intermediate_size", desc.intermediate_size},
          {"biases", desc.biases.any() ? Json(name_of(desc.biases)) : Json(nullptr)},
          {"batch_invariant", desc.batch_invariant ? Json(true) : Json(nullptr)},
          {"forced", desc.implementation.empty() ? Json(nullptr) : Json(desc.implementation)}};
}

std::string sentence(const Json& description) {
  std::string text;
  for (const auto& item : description.items()) {
    if (!item.value().is_null()) text += (text.empty() ? "" : ", ") + item.key() + " " + plain_text(item.value());
  }
  return text;
}

int explain(const Options& options) {
  options.output.validate();
  for (const std::int64_t tokens : options.tokens) require_at_least("--tokens", tokens, 0);
  const Shape shape = resolve(options.shape, parse_op(options.op) != GATEFOLD_OP_ACT_AND_MUL);
  const Desc desc = describe(options, shape);
  const Plan plan(desc);

  Report report;
  report.context = base_context();
  report.context["description"] = describe(desc, shape);
  report.title = sentence(report.context["description"]);
  report.columns = {{"tokens", "tokens", plain_text},
                    {"name", "candidate", plain_text},
                    {"chosen", "chosen", plain_text},
                    {"eligible", "eligible", plain_text},
                    {"reason", "reason", plain_text}};
  for (const std::int64_t tokens : options.tokens) {
    for (const Candidate& candidate : plan.explain(tokens)) {
      report.rows.push_back({{"tokens", tokens},
                             {"name", candidate.name},
                             {"chosen", candidate.chosen},
                             {"eligible", candidate.eligible},
                             {"reason", candidate.reason},
                             {"workspace_bytes", plan.workspace_size(tokens)}});
    }
  }
  options.output.emit(report);
  return 0;
}

}  // namespace

Command add_explain(const App& root) {
  const App app = root.add_subcommand("explain", "Which implementation a description gets, and why");
  auto options = std::make_shared<Options>();
  app.add_option("--op", options->op, "act_and_mul, gemm, gemm_gated, gate_up or mlp").capture_default_str();
  app.add_option("--dtype", options->dtype, "fp32, fp16 or bf16").capture_default_str();
  app.add_option("--layout", options->layout,
                 "separate, gate_up, up_gate, interleaved_gate_up:B, interleaved_up_gate:B")
      .capture_default_str();
  app.add_option("--activation", options->activation, "Default: the model's, or silu");
  app.add_option("--device", options->device, "auto, cpu or cuda").capture_default_str();
  app.add_option("--impl", options->implementation,
                 "Force an implementation by its name, or one of its kernels: NAME:KERNEL");
  app.add_option("--biases", options->biases, "Bias vectors: gate (of a packed layout both halves'), up, down")
      .delimiter(',');
  app.add_flag("--batch-invariant", options->batch_invariant, "A row's bits hang on nothing but the row");
  options->shape.add_to(app);
  app.add_option("--tokens", options->tokens, "Numbers of tokens").delimiter(',').capture_default_str();
  options->output.add_to(app);
  return {app, [options] { return explain(*options); }};
}

}  // namespace gatefold::cli
