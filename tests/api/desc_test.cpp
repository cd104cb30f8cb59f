#include <cmath>
#include <cstring>
#include <limits>

#include "api/valid_call.hpp"

// Every way a description can be wrong: refused with one line that names the thing and the values that disagree.
namespace gatefold::test {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

gatefold_desc valid(gatefold_op op, gatefold_layout layout = GATEFOLD_LAYOUT_SEPARATE) {
  return ValidCall(op, layout).desc;
}

// What a C caller's int does.
template <class Enum>
void put(Enum& field, int value) {
  std::memcpy(&field, &value, sizeof value);
}

constexpr gatefold_op ops[] = {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP,
                               GATEFOLD_OP_MLP};

TEST(BadDesc, NullPointers) {
  const gatefold_desc desc = valid(GATEFOLD_OP_GEMM);
  gatefold_plan* plan = nullptr;
  EXPECT_EQ(gatefold_plan_create(nullptr, &plan), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(gatefold_last_error(), "gatefold_plan_create: desc is null, expected a pointer");
  EXPECT_EQ(gatefold_plan_create(&desc, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(gatefold_last_error(), "gatefold_plan_create: plan is null, expected a pointer");
}

TEST(BadDesc, WrongStructSize) {
  gatefold_desc desc = valid(GATEFOLD_OP_GEMM);
  desc.struct_size = 8;
  expect_refused(desc, {"struct_size 8", std::to_string(sizeof desc)});
  desc.struct_size = std::numeric_limits<std::size_t>::max();
  expect_refused(desc, {"struct_size", std::to_string(desc.struct_size), "4096"});
}

TEST(BadDesc, EnumsOutOfRange) {
  for (const int wrong : {0, -1, 99, 257, std::numeric_limits<int>::max()}) {
    const std::string value = std::to_string(wrong);
    gatefold_desc desc = valid(GATEFOLD_OP_GATE_UP);
    put(desc.op, wrong);
    expect_refused(desc, {"op", value, "1 to 5"});
    desc = valid(GATEFOLD_OP_GATE_UP);
    put(desc.dtype, wrong);
    expect_refused(desc, {"dtype", value, "1 to 3"});
    desc = valid(GATEFOLD_OP_GATE_UP);
    put(desc.device, wrong);
    expect_refused(desc, {"device", value, "1 or 2"});
    desc = valid(GATEFOLD_OP_GATE_UP);
    put(desc.layout, wrong);
    expect_refused(desc, {"layout", value, "no default"});
    desc = valid(GATEFOLD_OP_GATE_UP);
    put(desc.activation, wrong);
    expect_refused(desc, {"activation", value, "1 to 7"});
  }
}

TEST(BadDesc, MissingLayoutOrActivation) {
  for (const gatefold_op op : {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP}) {
    gatefold_desc desc = valid(op);
    put(desc.layout, 0);
    expect_refused(desc, {"layout: 0", "no default"});
    desc = valid(op);
    put(desc.activation, 0);
    expect_refused(desc, {"activation: 0"});
  }
}

TEST(BadDesc, WhatTheOpHasNoUseFor) {
  gatefold_desc desc = valid(GATEFOLD_OP_GEMM);
  desc.layout = GATEFOLD_LAYOUT_SEPARATE;
  expect_refused(desc, {"layout: 1", "gemm expects 0"});
  desc = valid(GATEFOLD_OP_GEMM);
  desc.activation = GATEFOLD_ACTIVATION_SILU;
  expect_refused(desc, {"activation: 1", "gemm expects 0"});
  desc = valid(GATEFOLD_OP_GEMM);
  desc.ld_gate = 12;
  expect_refused(desc, {"ld_gate: 12", "gemm expects 0"});
  desc = valid(GATEFOLD_OP_GEMM_GATED);
  desc.block = 4;
  expect_refused(desc, {"block: 4", "gemm_gated expects 0"});
  desc = valid(GATEFOLD_OP_GATE_UP);
  desc.block = 4;
  expect_refused(desc, {"block: 4", "gate_up expects 0"});
  desc = valid(GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_GATE_UP);
  desc.ld_up = 8;
  expect_refused(desc, {"ld_up: 8", "gate_up expects 0"});
  desc = valid(GATEFOLD_OP_GATE_UP);
  desc.ld_down = 12;
  expect_refused(desc, {"ld_down: 12", "gate_up expects 0"});
  desc = valid(GATEFOLD_OP_ACT_AND_MUL);
  desc.hidden_size = 8;
  expect_refused(desc, {"hidden_size: 8", "act_and_mul expects 0"});
  desc = valid(GATEFOLD_OP_ACT_AND_MUL);
  desc.ld_x = 8;
  expect_refused(desc, {"ld_x: 8", "act_and_mul expects 0"});
}

TEST(BadDesc, BlockThatDoesNotDivide) {
  for (const gatefold_layout layout : {GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP, GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE}) {
    gatefold_desc desc = valid(GATEFOLD_OP_MLP, layout);
    desc.block = 5;
    expect_refused(desc, {"intermediate_size 12", "block 5"});
    desc.block = 0;
    expect_refused(desc, {"block: 0", "interleaved"});
    desc.block = -4;
    expect_refused(desc, {"block: -4", "interleaved"});
  }
}

TEST(BadDesc, ClampedParameters) {
  const auto clamped = [](float limit, float alpha, float beta) {
    gatefold_desc desc = valid(GATEFOLD_OP_GATE_UP);
    desc.activation = GATEFOLD_ACTIVATION_SWIGLU_CLAMPED;
    desc.limit = limit;
    desc.alpha = alpha;
    desc.beta = beta;
    return desc;
  };
  expect_refused(clamped(0.0F, 1.0F, 1.0F), {"limit: 0", "> 0"});
  expect_refused(clamped(-7.0F, 1.0F, 1.0F), {"limit: -7", "> 0"});
  expect_refused(clamped(NAN, 1.0F, 1.0F), {"limit: nan", "> 0"});
  expect_refused(clamped(7.0F, INFINITY, 1.0F), {"alpha: inf", "finite"});
  expect_refused(clamped(7.0F, 1.0F, NAN), {"beta: nan", "finite"});

  ValidCall call(GATEFOLD_OP_GATE_UP);
  call.desc = clamped(INFINITY, 1.0F, 0.0F);
  expect_runs(call);
}

TEST(BadDesc, NegativeAndOverflowingSizes) {
  for (const gatefold_op op : ops) {
    gatefold_desc desc = valid(op);
    desc.intermediate_size = -1;
    expect_refused(desc, {"intermediate_size: -1", "negative"});
    desc.intermediate_size = int64_max;
    expect_refused(desc, {"intermediate_size", std::to_string(int64_max), "overflow"});
    if (op == GATEFOLD_OP_ACT_AND_MUL) continue;
    desc = valid(op);
    desc.hidden_size = -8;
    expect_refused(desc, {"hidden_size: -8", "negative"});
    desc.hidden_size = std::int64_t{1} << 58;
    expect_refused(desc, {"12", std::to_string(desc.hidden_size), "overflow"});
  }
}

TEST(BadDesc, LeadingDimensions) {
  struct Case {
    gatefold_op op;
    gatefold_layout layout;
    std::int64_t gatefold_desc::*field;
    const char* name;
    std::int64_t least;
    const char* least_name;
    std::int64_t rows;  // 0: known at run time only
  };
  const Case cases[] = {
      {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_gate, "gate", 12, "intermediate_size", 0},
      {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_up, "up", 12, "intermediate_size", 0},
      {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_GATE_UP, &gatefold_desc::ld_gate, "gate and up", 24,
       "2 x intermediate_size", 0},
      {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_out, "out", 12, "intermediate_size", 0},
      {GATEFOLD_OP_GEMM, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_x, "x", 8, "hidden_size", 0},
      {GATEFOLD_OP_GEMM, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_up, "up", 8, "hidden_size", 12},
      {GATEFOLD_OP_GEMM_GATED, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_gate, "gate", 12, "intermediate_size", 0},
      {GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_gate, "gate", 8, "hidden_size", 12},
      {GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_up, "up", 8, "hidden_size", 12},
      {GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP, &gatefold_desc::ld_gate, "gate and up", 8,
       "hidden_size", 24},
      {GATEFOLD_OP_MLP, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_down, "down", 12, "intermediate_size", 8},
      {GATEFOLD_OP_MLP, GATEFOLD_LAYOUT_SEPARATE, &gatefold_desc::ld_out, "out", 8, "hidden_size", 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    gatefold_desc desc = valid(c.op, c.layout);
    desc.*c.field = c.least - 1;
    expect_refused(desc, {std::string(c.name) + ": leading dimension " + std::to_string(c.least - 1) + " < " +
                          c.least_name + " " + std::to_string(c.least)});
    desc.*c.field = -3;
    expect_refused(desc, {std::string(c.name) + ": leading dimension -3", "negative"});
    if (c.rows == 0) continue;
    desc.*c.field = int64_max / 4;
    expect_refused(desc, {c.name, std::to_string(c.rows) + " rows", std::to_string(int64_max / 4), "overflow"});
  }
}

TEST(BadDesc, UnknownImplementationIsRefusedWithTheKnownOnes) {
  for (const gatefold_op op : ops) {
    gatefold_desc desc = valid(op);
    desc.implementation = "warp-drive";
    expect_refused(desc, {"implementation", "\"warp-drive\"", "reference"});
  }
}

TEST(BadDesc, DeviceThatIsNotInThisBuild) {
  const char* why = nullptr;
  if (gatefold_device_count(GATEFOLD_DEVICE_CUDA, &why) > 0) GTEST_SKIP() << "there is a GPU";
  gatefold_desc desc = valid(GATEFOLD_OP_GEMM);
  desc.device = GATEFOLD_DEVICE_CUDA;
  expect_refused(desc, {"cuda"}, GATEFOLD_ERROR_UNSUPPORTED);
}

}  // namespace
}  // namespace gatefold::test
