#include "support/experiment.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "support/names.hpp"
#include "support/values.hpp"

namespace gatefold::test {
namespace {

using Role = ValueSource::Role;

bool has_x(gatefold_op op) { return op != GATEFOLD_OP_ACT_AND_MUL; }
bool has_gate(gatefold_op op) { return op != GATEFOLD_OP_GEMM; }
bool has_weight_halves(gatefold_op op) { return op == GATEFOLD_OP_GATE_UP || op == GATEFOLD_OP_MLP; }

bool is_packed(const Spec& spec) { return uses_layout(spec.op) && spec.layout.packed(); }

void* device_pointer(const std::optional<Tensor>& tensor) { return tensor ? tensor->device() : nullptr; }
void* host_pointer(std::optional<Tensor>& tensor) { return tensor ? tensor->host() : nullptr; }

}  // namespace

Biases biases_of(const Spec& s) {
  const bool single = s.op == GATEFOLD_OP_GEMM || s.op == GATEFOLD_OP_GEMM_GATED;
  if (single) return {.up = s.biases.up};
  if (!has_weight_halves(s.op)) return {};
  const bool down = s.op == GATEFOLD_OP_MLP && s.biases.down;
  if (is_packed(s)) return {.gate = s.biases.gate || s.biases.up, .down = down};
  return {.gate = s.biases.gate, .up = s.biases.up, .down = down};
}

std::string describe(const Spec& s) {
  std::string text = name(s.op) + " " + name(s.dtype);
  if (uses_activation(s.op)) text += " " + name(s.activation.kind);
  if (uses_layout(s.op)) text += " " + name(s.layout);
  return text + " T=" + std::to_string(s.tokens) + " D=" + std::to_string(s.hidden_size) +
         " F=" + std::to_string(s.intermediate_size) + " padding x,gate,up,down,out=" + std::to_string(s.padding.x) +
         "," + std::to_string(s.padding.gate) + "," + std::to_string(s.padding.up) + "," +
         std::to_string(s.padding.down) + "," + std::to_string(s.padding.out) + " shift=" + std::to_string(s.shift) +
         " biases=" + std::to_string(biases_of(s).bits()) + (s.batch_invariant ? " batch-invariant" : "");
}

Experiment::Experiment(const Spec& spec, Random& random, Memory& memory) : spec_(spec), memory_(&memory) {
  if (spec_.op == GATEFOLD_OP_ACT_AND_MUL) spec_.hidden_size = 0;
  positions_ = positions(uses_layout(spec_.op) ? spec_.layout : Layout::separate(), spec_.intermediate_size);
  make_tensors();
  make_biases();
  fill(random);
  fill_biases(random);
}

bool Experiment::packed() const { return is_packed(spec_); }

std::int64_t Experiment::columns() const {
  return spec_.op == GATEFOLD_OP_MLP ? spec_.hidden_size : spec_.intermediate_size;
}

Tensor Experiment::make(const Shape& shape) const { return Tensor(*memory_, spec_.dtype, shape); }

void Experiment::make_tensors() {
  const std::int64_t T = spec_.tokens;
  const std::int64_t D = spec_.hidden_size;
  const std::int64_t F = spec_.intermediate_size;
  const std::int64_t lines = packed() ? 2 * F : F;
  const Padding& pad = spec_.padding;
  if (has_x(spec_.op)) x_.emplace(make({T, D, D + pad.x, spec_.shift}));
  if (has_weight_halves(spec_.op)) {
    gate_.emplace(make({lines, D, D + pad.gate, spec_.shift}));
    if (!packed()) up_.emplace(make({F, D, D + pad.up, spec_.shift}));
  } else {
    if (has_gate(spec_.op)) gate_.emplace(make({T, lines, lines + pad.gate, spec_.shift}));
    const bool operand = spec_.op == GATEFOLD_OP_ACT_AND_MUL;
    const std::int64_t row_length = operand ? F : D;
    if (!packed()) up_.emplace(make({operand ? T : F, row_length, row_length + pad.up, spec_.shift}));
  }
  if (spec_.op == GATEFOLD_OP_MLP) down_.emplace(make({D, F, F + pad.down, spec_.shift}));
  out_.emplace(make_out());
}

void Experiment::make_biases() {
  const std::int64_t F = spec_.intermediate_size;
  const std::int64_t lines = packed() ? 2 * F : F;
  const Biases biases = biases_of(spec_);
  if (biases.gate) gate_bias_.emplace(make({1, lines, lines, spec_.shift}));
  if (biases.up) up_bias_.emplace(make({1, F, F, spec_.shift}));
  if (biases.down) down_bias_.emplace(make({1, spec_.hidden_size, spec_.hidden_size, spec_.shift}));
}

void Experiment::fill_biases(Random& random) {
  const std::int64_t F = spec_.intermediate_size;
  ValueSource source(random, spec_.values, spec_.dtype);
  if (gate_bias_) source.fill(Role::gate_bias, 1, F, [&](auto, auto f, double value) { set_gate_bias(f, value); });
  if (up_bias_tensor()) source.fill(Role::up_bias, 1, F, [&](auto, auto f, double value) { set_up_bias(f, value); });
  if (down_bias_) {
    source.fill(Role::gate_bias, 1, spec_.hidden_size,
                [&](auto, auto d, double value) { down_bias_->set(0, d, value); });
  }
}

void Experiment::fill(Random& random) {
  const std::int64_t T = spec_.tokens;
  const std::int64_t D = spec_.hidden_size;
  const std::int64_t F = spec_.intermediate_size;
  ValueSource source(random, spec_.values, spec_.dtype);
  Tensor& up_storage = up_ ? *up_ : *gate_;
  const auto set = [](Tensor& tensor) {
    return [&tensor](std::int64_t row, std::int64_t column, double value) { tensor.set(row, column, value); };
  };
  const auto set_lines = [](Tensor& tensor, const std::vector<std::int64_t>& lines) {
    return [&](std::int64_t line, std::int64_t k, double value) { tensor.set(lines[line], k, value); };
  };
  const auto set_columns = [](Tensor& tensor, const std::vector<std::int64_t>& lines) {
    return [&](std::int64_t row, std::int64_t line, double value) { tensor.set(row, lines[line], value); };
  };
  if (x_) source.fill(Role::activations, T, D, set(*x_));
  if (has_weight_halves(spec_.op)) {
    source.fill(Role::gate_weights, F, D, set_lines(*gate_, positions_.gate));
  } else if (gate_) {
    source.fill(Role::gate_operand, T, F, set_columns(*gate_, positions_.gate));
  }
  if (spec_.op == GATEFOLD_OP_ACT_AND_MUL) {
    source.fill(Role::up_operand, T, F, set_columns(up_storage, positions_.up));
  } else {
    source.fill(Role::up_weights, F, D, set_lines(up_storage, positions_.up));
  }
  if (down_) source.fill(Role::gate_weights, D, F, set(*down_));
}

Desc Experiment::desc(const std::string& implementation) const {
  Desc desc{.op = spec_.op, .dtype = spec_.dtype, .device = memory_->device()};
  if (uses_layout(spec_.op)) desc.layout = spec_.layout;
  if (uses_activation(spec_.op)) desc.activation = spec_.activation;
  desc.hidden_size = spec_.hidden_size;
  desc.intermediate_size = spec_.intermediate_size;
  const auto ld = [](const std::optional<Tensor>& tensor) { return tensor ? tensor->shape().ld : 0; };
  desc.ld = {.x = ld(x_), .gate = ld(gate_), .up = ld(up_), .down = ld(down_), .out = ld(out_)};
  desc.implementation = implementation;
  desc.biases = biases_of(spec_);
  desc.batch_invariant = spec_.batch_invariant;
  return desc;
}

Tensor Experiment::make_out() const {
  return make({spec_.tokens, columns(), columns() + spec_.padding.out, spec_.shift});
}

Tensor Experiment::make_workspace(const Plan& plan) const {
  const auto bytes = static_cast<std::int64_t>(plan.workspace_size(spec_.tokens));
  return Tensor(*memory_, GATEFOLD_DTYPE_BF16, {1, (bytes + 1) / 2, (bytes + 1) / 2, 0});
}

Args Experiment::device_args(Tensor& out, Tensor& workspace) const {
  return {.tokens = spec_.tokens,
          .x = device_pointer(x_),
          .gate = device_pointer(gate_),
          .up = device_pointer(up_),
          .down = device_pointer(down_),
          .out = out.device(),
          .workspace = {workspace.device(), static_cast<std::size_t>(workspace.shape().columns) * 2},
          .gate_bias = device_pointer(gate_bias_),
          .up_bias = device_pointer(up_bias_),
          .down_bias = device_pointer(down_bias_)};
}

Args Experiment::host_args() {
  return {.tokens = spec_.tokens,
          .x = host_pointer(x_),
          .gate = host_pointer(gate_),
          .up = host_pointer(up_),
          .down = host_pointer(down_),
          .out = host_pointer(out_),
          .gate_bias = host_pointer(gate_bias_),
          .up_bias = host_pointer(up_bias_),
          .down_bias = host_pointer(down_bias_)};
}

bool Experiment::run(const std::string& implementation) {
  try {
    run(Plan(desc(implementation)));
  } catch (const Error& error) {
    if (error.status() != GATEFOLD_ERROR_UNSUPPORTED || implementation == "reference") throw;
    return false;
  }
  return true;
}

void Experiment::run(const Plan& plan) {
  Tensor workspace = make_workspace(plan);
  workspace.upload();
  out_->poison();
  out_->upload();
  for (auto* input : {&x_, &gate_, &up_, &down_, &gate_bias_, &up_bias_, &down_bias_}) {
    if (*input) (*input)->upload();
  }

  plan.run(device_args(*out_, workspace));

  out_->download();
  out_->expect_surroundings_unchanged("out");
  workspace.download();
  workspace.expect_surroundings_unchanged("workspace");
  const std::pair<const char*, std::optional<Tensor>*> inputs[] = {{"x", &x_},
                                                                   {"gate", &gate_},
                                                                   {"up", &up_},
                                                                   {"down", &down_},
                                                                   {"gate_bias", &gate_bias_},
                                                                   {"up_bias", &up_bias_},
                                                                   {"down_bias", &down_bias_}};
  for (const auto& [input_name, input] : inputs) {
    if (!*input) continue;
    (*input)->download();
    (*input)->expect_unchanged(input_name);
  }
}

gatefold_error_report Experiment::check(gatefold_data data, double* truth) {
  return gatefold::check(desc(), host_args(), data, truth);
}

std::vector<std::byte> Experiment::run_batch(const Plan& plan, std::int64_t first, std::int64_t tokens) const {
  Tensor out = make_out();
  out.poison();
  out.upload();
  Tensor workspace = make_workspace(plan);
  workspace.poison();
  workspace.upload();
  Args args = device_args(out, workspace);
  args.tokens = tokens;
  const auto advance = [&](const void*& base, const std::optional<Tensor>& rows) {
    base = static_cast<const std::byte*>(base) +
           first * rows->shape().ld * static_cast<std::int64_t>(element_size(spec_.dtype));
  };
  if (x_) advance(args.x, x_);
  if (has_gate(spec_.op) && !has_weight_halves(spec_.op)) advance(args.gate, gate_);
  if (spec_.op == GATEFOLD_OP_ACT_AND_MUL && up_) advance(args.up, up_);
  plan.run(args);
  out.download();
  return elements_of(out, tokens);
}

std::vector<std::byte> Experiment::out_bytes() const { return elements_of(*out_, spec_.tokens); }

std::vector<std::byte> Experiment::elements_of(const Tensor& tensor, std::int64_t rows) const {
  const Shape& shape = tensor.shape();
  const auto row_bytes = static_cast<std::size_t>(shape.columns) * element_size(spec_.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * row_bytes);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(bytes.data() + static_cast<std::size_t>(row) * row_bytes,
                tensor.host() + row * shape.ld * static_cast<std::int64_t>(element_size(spec_.dtype)), row_bytes);
  }
  return bytes;
}

}  // namespace gatefold::test
