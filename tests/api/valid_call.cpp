#include "api/valid_call.hpp"

#include <memory>

namespace gatefold::test {
namespace {

constexpr float untouched = -77.0F;
constexpr std::size_t workspace_bytes = 1 << 16;

void set_workspace(ValidCall& call, std::size_t bytes) {
  call.workspace.resize(bytes + 256);
  const auto address = reinterpret_cast<std::uintptr_t>(call.workspace.data());
  call.args.workspace = call.workspace.data() + (256 - address % 256) % 256;
  call.args.workspace_size = bytes;
}

struct Destroy {
  void operator()(gatefold_plan* plan) const { gatefold_plan_destroy(plan); }
};
using PlanPointer = std::unique_ptr<gatefold_plan, Destroy>;

PlanPointer make_plan(const gatefold_desc& desc) {
  gatefold_plan* plan = nullptr;
  EXPECT_EQ(gatefold_plan_create(&desc, &plan), GATEFOLD_SUCCESS) << gatefold_last_error();
  return PlanPointer(plan);
}

void expect_message(const std::vector<std::string>& parts) {
  const std::string message = gatefold_last_error();
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" is not in \"" << message << "\"";
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace

ValidCall::ValidCall(gatefold_op op, gatefold_layout layout) {
  const bool operands = op == GATEFOLD_OP_ACT_AND_MUL;
  const bool single = op == GATEFOLD_OP_GEMM || op == GATEFOLD_OP_GEMM_GATED;
  const bool packed = !single && layout != GATEFOLD_LAYOUT_SEPARATE;
  desc.struct_size = sizeof desc;
  desc.op = op;
  desc.dtype = GATEFOLD_DTYPE_FP32;
  desc.device = GATEFOLD_DEVICE_CPU;
  if (!single) desc.layout = layout;
  if (packed && layout >= GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP) desc.block = 4;
  if (op != GATEFOLD_OP_GEMM) desc.activation = GATEFOLD_ACTIVATION_SILU;
  if (!operands) desc.hidden_size = hidden_size;
  desc.intermediate_size = intermediate_size;

  const auto elements = [](std::int64_t rows, std::int64_t columns, float value) {
    return std::vector<float>(static_cast<std::size_t>(rows * columns), value);
  };
  const bool gate_values = operands || op == GATEFOLD_OP_GEMM_GATED;
  x = elements(tokens, hidden_size, 0.5F);
  gate = elements(gate_values ? tokens : intermediate_size, (gate_values ? intermediate_size : hidden_size) * 2, 0.25F);
  up = elements(operands ? tokens : intermediate_size, operands ? intermediate_size : hidden_size, 2.0F);
  down = elements(hidden_size, intermediate_size, 1.0F);
  out = elements(tokens, op == GATEFOLD_OP_MLP ? hidden_size : intermediate_size, untouched);

  args.struct_size = sizeof args;
  args.tokens = tokens;
  if (!operands) args.x = x.data();
  if (op != GATEFOLD_OP_GEMM) args.gate = gate.data();
  if (!packed) args.up = up.data();
  if (op == GATEFOLD_OP_MLP) args.down = down.data();
  args.out = out.data();
  set_workspace(*this, workspace_bytes);
}

void expect_refused(const gatefold_desc& desc, const std::vector<std::string>& parts, gatefold_status status) {
  gatefold_plan* const nothing = nullptr;
  gatefold_plan* plan = nothing;
  EXPECT_EQ(gatefold_plan_create(&desc, &plan), status) << gatefold_last_error();
  EXPECT_EQ(plan, nothing);
  expect_message(parts);
}

void expect_run_refused(ValidCall& call, const std::vector<std::string>& parts, gatefold_status status) {
  const PlanPointer plan = make_plan(call.desc);
  ASSERT_NE(plan, nullptr);
  const std::vector<float> x = call.x;
  const std::vector<float> gate = call.gate;
  const std::vector<float> up = call.up;
  const std::vector<float> down = call.down;
  const std::vector<float> out = call.out;
  EXPECT_EQ(gatefold_run(plan.get(), &call.args), status) << gatefold_last_error();
  expect_message(parts);
  EXPECT_EQ(call.out, out) << "the output was touched";
  EXPECT_TRUE(call.x == x && call.gate == gate && call.up == up && call.down == down) << "an input was touched";
}

void expect_runs(ValidCall& call) {
  const PlanPointer plan = make_plan(call.desc);
  ASSERT_NE(plan, nullptr);
  std::size_t bytes = 0;
  ASSERT_EQ(gatefold_plan_workspace_size(plan.get(), ValidCall::tokens, &bytes), GATEFOLD_SUCCESS);
  set_workspace(call, bytes);
  EXPECT_EQ(gatefold_run(plan.get(), &call.args), GATEFOLD_SUCCESS) << gatefold_last_error();
  EXPECT_STREQ(gatefold_last_error(), "");
  for (const float value : call.out) EXPECT_NE(value, untouched);
}

}  // namespace gatefold::test
