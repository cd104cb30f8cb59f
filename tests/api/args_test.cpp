#include <algorithm>
#include <limits>

#include "api/valid_call.hpp"

// Every way a run's arguments can be wrong: refused with one line, the output untouched.
namespace gatefold::test {
namespace {

constexpr gatefold_op ops[] = {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP,
                               GATEFOLD_OP_MLP};
constexpr gatefold_layout layouts[] = {GATEFOLD_LAYOUT_SEPARATE, GATEFOLD_LAYOUT_GATE_UP, GATEFOLD_LAYOUT_UP_GATE,
                                       GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP, GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE};

struct Pointer {
  const char* name;
  const void* gatefold_args::*field;
};
constexpr Pointer inputs[] = {{"x", &gatefold_args::x},
                              {"gate", &gatefold_args::gate},
                              {"up", &gatefold_args::up},
                              {"down", &gatefold_args::down}};

TEST(GoodArgs, EveryOpAndLayoutRuns) {
  for (const gatefold_op op : ops) {
    for (const gatefold_layout layout : layouts) {
      ValidCall call(op, layout);
      expect_runs(call);
    }
  }
}

TEST(BadArgs, NullPointers) {
  ValidCall call(GATEFOLD_OP_GEMM);
  EXPECT_EQ(gatefold_run(nullptr, &call.args), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(gatefold_last_error(), "gatefold_run: plan is null, expected a pointer");
  gatefold_plan* plan = nullptr;
  ASSERT_EQ(gatefold_plan_create(&call.desc, &plan), GATEFOLD_SUCCESS);
  EXPECT_EQ(gatefold_run(plan, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(gatefold_last_error(), "gatefold_run: args is null, expected a pointer");
  gatefold_plan_destroy(plan);
  gatefold_plan_destroy(nullptr);
}

TEST(BadArgs, WrongStructSize) {
  ValidCall call(GATEFOLD_OP_GATE_UP);
  call.args.struct_size -= 1;
  expect_run_refused(call,
                     {"args: struct_size", std::to_string(sizeof call.args - 1), std::to_string(sizeof call.args)});
}

// Each tensor that an op reads missing, and each that it doesn't read given.
TEST(BadArgs, MissingAndSuperfluousTensors) {
  for (const gatefold_op op : ops) {
    for (const gatefold_layout layout : {GATEFOLD_LAYOUT_SEPARATE, GATEFOLD_LAYOUT_GATE_UP}) {
      for (const Pointer& input : inputs) {
        ValidCall call(op, layout);
        const void*& pointer = call.args.*input.field;
        if (pointer != nullptr) {
          pointer = nullptr;
          expect_run_refused(call, {std::string(input.name) + ": null pointer", " x "});
        } else {
          pointer = call.x.data();
          expect_run_refused(call, {std::string(input.name) + ": a pointer was given", "null"});
        }
      }
      ValidCall call(op, layout);
      call.args.out = nullptr;
      expect_run_refused(call, {"out: null pointer", "3 x "});
    }
  }
}

TEST(BadArgs, Misaligned) {
  for (const Pointer& input : inputs) {
    ValidCall call(GATEFOLD_OP_MLP);
    call.args.*input.field = static_cast<const std::byte*>(call.args.*input.field) + 2;
    expect_run_refused(call, {std::string(input.name) + ": address", "element size 4"});
  }
  ValidCall call(GATEFOLD_OP_MLP);
  call.args.out = static_cast<std::byte*>(call.args.out) + 1;
  expect_run_refused(call, {"out: address", "element size 4"});
}

TEST(BadArgs, NegativeAndOverflowingTokens) {
  for (const gatefold_op op : ops) {
    ValidCall call(op);
    call.args.tokens = -1;
    expect_run_refused(call, {"tokens: -1", "negative"});
    for (const std::int64_t huge : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 60}) {
      call.args.tokens = huge;
      expect_run_refused(call, {std::to_string(huge) + " rows", "overflow"});
    }
  }
}

// h [T, F] lies in the workspace, so that no argument's size tells of it. Nothing is read: the pointers are made up.
TEST(BadArgs, OverflowingWorkspaceOfAnMlp) {
  ValidCall call(GATEFOLD_OP_MLP);
  constexpr std::int64_t tokens = std::int64_t{1} << 40;
  call.desc.hidden_size = 1;
  call.desc.intermediate_size = std::int64_t{1} << 30;
  call.args.tokens = tokens;
  const auto place = [](std::uintptr_t index) { return reinterpret_cast<void*>(index << 44); };
  call.args.x = place(1);
  call.args.gate = place(2);
  call.args.up = place(3);
  call.args.down = place(4);
  call.args.out = place(5);
  expect_run_refused(call, {"tokens: 1099511627776 x 1073741824 overflows 64-bit indexing"});
}

TEST(BadArgs, OutputOverAnInput) {
  for (const gatefold_op op : ops) {
    for (const Pointer& input : inputs) {
      ValidCall call(op);
      if (call.args.*input.field == nullptr) continue;
      // Not the first element: that act_and_mul may write in place is tested below.
      call.args.out = const_cast<std::byte*>(static_cast<const std::byte*>(call.args.*input.field)) + sizeof(float);
      expect_run_refused(call, {"out: 3 x ", std::string("overlaps input ") + input.name});
    }
  }
}

TEST(BadArgs, OutputOverPackedOperands) {
  ValidCall call(GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_GATE_UP);
  call.args.out = call.gate.data();
  call.desc.ld_out = 2 * ValidCall::intermediate_size;
  expect_run_refused(call, {"out", "overlaps input gate"});
}

TEST(BadArgs, InPlaceWithAnotherLeadingDimension) {
  ValidCall call(GATEFOLD_OP_ACT_AND_MUL);
  call.args.out = call.gate.data();
  call.desc.ld_gate = ValidCall::intermediate_size + 4;
  expect_run_refused(call, {"out", "overlaps input gate"});
}

TEST(BadArgs, InPlaceProducts) {
  ValidCall call(GATEFOLD_OP_GEMM_GATED);
  call.args.out = call.gate.data();
  expect_run_refused(call, {"out", "overlaps input gate"});
}

TEST(GoodArgs, ActAndMulOverGateOrUp) {
  ValidCall apart(GATEFOLD_OP_ACT_AND_MUL);
  for (std::size_t i = 0; i < apart.gate.size(); ++i) apart.gate[i] = 0.1F * static_cast<float>(i) - 1.0F;
  for (std::size_t i = 0; i < apart.up.size(); ++i) apart.up[i] = 3.0F - 0.2F * static_cast<float>(i);
  ValidCall over_gate(GATEFOLD_OP_ACT_AND_MUL);
  over_gate.gate = apart.gate;
  over_gate.up = apart.up;
  ValidCall over_up(GATEFOLD_OP_ACT_AND_MUL);
  over_up.gate = apart.gate;
  over_up.up = apart.up;
  for (ValidCall* call : {&over_gate, &over_up}) {
    call->args.gate = call->gate.data();
    call->args.up = call->up.data();
    std::fill(call->out.begin(), call->out.end(), 0.0F);
  }
  over_gate.args.out = over_gate.gate.data();
  over_up.args.out = over_up.up.data();
  expect_runs(apart);
  expect_runs(over_gate);
  expect_runs(over_up);
  for (std::size_t i = 0; i < apart.out.size(); ++i) {
    EXPECT_EQ(over_gate.gate[i], apart.out[i]) << i;
    EXPECT_EQ(over_up.up[i], apart.out[i]) << i;
  }
}

// gate, up and the output as columns of one buffer with a common row pitch.
TEST(GoodArgs, ColumnSlicesOfOneBuffer) {
  constexpr std::int64_t F = ValidCall::intermediate_size;
  ValidCall apart(GATEFOLD_OP_ACT_AND_MUL);
  expect_runs(apart);
  ValidCall call(GATEFOLD_OP_ACT_AND_MUL);
  std::vector<float> buffer(static_cast<std::size_t>(ValidCall::tokens * 3 * F), 0.25F);
  for (std::int64_t t = 0; t < ValidCall::tokens; ++t) {
    for (std::int64_t f = 0; f < F; ++f) buffer[t * 3 * F + 2 * F + f] = 2.0F;
  }
  call.desc.ld_gate = call.desc.ld_up = call.desc.ld_out = 3 * F;
  call.args.gate = buffer.data();
  call.args.out = buffer.data() + F;
  call.args.up = buffer.data() + 2 * F;
  std::fill(call.out.begin(), call.out.end(), 0.0F);
  expect_runs(call);
  for (std::int64_t t = 0; t < ValidCall::tokens; ++t) {
    for (std::int64_t f = 0; f < F; ++f) EXPECT_EQ(buffer[t * 3 * F + F + f], apart.out[t * F + f]);
  }

  call.args.out = buffer.data() + F + 1;  // its last column is up's first
  expect_run_refused(call, {"out", "overlaps input up"});
}

TEST(BadArgs, StreamOnTheCpu) {
  ValidCall call(GATEFOLD_OP_GEMM);
  int stream = 0;
  call.args.stream = &stream;
  expect_run_refused(call, {"stream", "CPU expects null"});
}

TEST(BadArgs, Workspace) {
  ValidCall call(GATEFOLD_OP_MLP);  // each way to compute it keeps h
  gatefold_plan* plan = nullptr;
  ASSERT_EQ(gatefold_plan_create(&call.desc, &plan), GATEFOLD_SUCCESS);
  std::size_t needed = 0;
  ASSERT_EQ(gatefold_plan_workspace_size(plan, ValidCall::tokens, &needed), GATEFOLD_SUCCESS);
  gatefold_plan_destroy(plan);
  ASSERT_GT(needed, 0U);
  ASSERT_LE(needed, call.args.workspace_size);

  call.args.workspace_size = needed - 1;
  expect_run_refused(call, {"workspace", std::to_string(needed - 1), std::to_string(needed) + " needed", "3 tokens"},
                     GATEFOLD_ERROR_WORKSPACE);
  call.args.workspace_size = needed;
  void* const aligned = call.args.workspace;
  call.args.workspace = nullptr;
  expect_run_refused(call, {"workspace: null pointer", std::to_string(needed)}, GATEFOLD_ERROR_WORKSPACE);
  call.args.workspace = static_cast<std::byte*>(aligned) + 64;
  expect_run_refused(call, {"workspace: address", "256"}, GATEFOLD_ERROR_WORKSPACE);
  call.args.workspace = aligned;
  expect_runs(call);
}

TEST(GoodArgs, NothingToWriteNeedsNoPointers) {
  for (const gatefold_op op : ops) {
    ValidCall call(op);
    const std::vector<float> before = call.out;
    gatefold_plan* plan = nullptr;
    ASSERT_EQ(gatefold_plan_create(&call.desc, &plan), GATEFOLD_SUCCESS);
    gatefold_args none{};
    none.struct_size = sizeof none;
    EXPECT_EQ(gatefold_run(plan, &none), GATEFOLD_SUCCESS) << gatefold_last_error();
    gatefold_plan_destroy(plan);
    EXPECT_EQ(call.out, before);
  }
}

}  // namespace
}  // namespace gatefold::test
