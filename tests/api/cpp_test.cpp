#include <gtest/gtest.h>

#include <array>
#include <type_traits>

#include "gatefold/gatefold.hpp"

// gatefold.hpp: the same contract with ownership and exceptions.
namespace gatefold::test {
namespace {

Desc gate_up() {
  return {.op = GATEFOLD_OP_GATE_UP,
          .dtype = GATEFOLD_DTYPE_FP32,
          .device = GATEFOLD_DEVICE_CPU,
          .layout = Layout::separate(),
          .activation = Activation::relu(),
          .hidden_size = 2,
          .intermediate_size = 1};
}

TEST(Cpp, RunsAndChecks) {
  const std::array x{1.0F, 2.0F};
  const std::array w_gate{3.0F, 1.0F};
  const std::array w_up{2.0F, -0.5F};
  std::array out{0.0F};
  const Plan plan(gate_up());
  const Workspace workspace(plan.workspace_size(1));
  const Args args{
      .tokens = 1, .x = x.data(), .gate = w_gate.data(), .up = w_up.data(), .out = out.data(), .workspace = workspace};
  plan.run(args);
  EXPECT_EQ(out[0], 5.0F);  // (3 + 2) * (2 - 1)
  double truth = 0.0;
  EXPECT_EQ(check(gate_up(), args, GATEFOLD_DATA_ANY, &truth).violations, 0);
  EXPECT_EQ(truth, 5.0);
}

TEST(Cpp, FailuresBecomeErrors) {
  Desc desc = gate_up();
  desc.layout.reset();
  try {
    const Plan plan(desc);
    FAIL() << "a plan without a layout was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GATEFOLD_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("layout"), std::string::npos);
  }
  const Plan plan(gate_up());
  EXPECT_THROW(plan.run({.tokens = 1}), Error);
  EXPECT_THROW(static_cast<void>(plan.workspace_size(-1)), Error);
  EXPECT_THROW(check(gate_up(), {.tokens = 1}, GATEFOLD_DATA_ANY), Error);
}

TEST(Cpp, PlansMoveAndDoNotCopy) {
  static_assert(std::is_nothrow_move_constructible_v<Plan> && !std::is_copy_constructible_v<Plan>);
  Plan plan(gate_up());
  const Plan moved = std::move(plan);
  EXPECT_NE(moved.implementation(1), "");
}

TEST(Cpp, ExplainNamesOneChoice) {
  Desc desc = gate_up();
  desc.implementation = "reference";
  const Plan plan(desc);
  const std::vector<Candidate> candidates = plan.explain(1);
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.back().name, "reference");
  EXPECT_TRUE(candidates.back().chosen);
  EXPECT_NE(candidates.back().reason.find("forced"), std::string::npos);
}

TEST(Cpp, WorkspaceIsAligned) {
  const Workspace workspace(1000);
  const WorkspaceView view = workspace;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 256, 0U);
  EXPECT_EQ(view.size, 1000U);
  EXPECT_EQ(static_cast<WorkspaceView>(Workspace(0)).data, nullptr);
}

TEST(Cpp, LayoutsCarryTheirBlock) {
  EXPECT_EQ(Layout::interleaved_up_gate(8).block(), 8);
  EXPECT_EQ(Layout::interleaved_up_gate(8).kind(), GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE);
  EXPECT_FALSE(Layout::separate().packed());
  EXPECT_TRUE(Layout::gate_up().packed());
}

}  // namespace
}  // namespace gatefold::test
