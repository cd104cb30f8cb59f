#include <cstdlib>
#include <locale>

#include "api/valid_call.hpp"
#include "gatefold/gatefold.hpp"

namespace gatefold::test {
namespace {

class Environment : public testing::Test {
 protected:
  ~Environment() override { unsetenv("GATEFOLD_IMPL"); }

  static std::string chosen(const gatefold_desc& desc) {
    gatefold_plan* plan = nullptr;
    EXPECT_EQ(gatefold_plan_create(&desc, &plan), GATEFOLD_SUCCESS) << gatefold_last_error();
    std::string name = gatefold_plan_implementation(plan, 1);
    gatefold_plan_destroy(plan);
    return name;
  }

  // "gate_up by ..., gemm by ..." of the mlp's reason.
  static std::string products_of_an_mlp() {
    const gatefold_desc desc = ValidCall(GATEFOLD_OP_MLP).desc;
    gatefold_plan* plan = nullptr;
    EXPECT_EQ(gatefold_plan_create(&desc, &plan), GATEFOLD_SUCCESS) << gatefold_last_error();
    gatefold_candidate candidate{};
    EXPECT_EQ(gatefold_plan_candidate(plan, 1, 0, &candidate), 1);
    const std::string reason = candidate.reason;
    gatefold_plan_destroy(plan);
    return reason.substr(reason.find("gate_up by"));
  }
};

TEST_F(Environment, ForcesTheFirstNameThatTheOpHas) {
  const gatefold_desc desc = ValidCall(GATEFOLD_OP_GATE_UP).desc;
  const std::string unforced = chosen(desc);
  setenv("GATEFOLD_IMPL", "reference", 1);
  EXPECT_EQ(chosen(desc), "reference");
  setenv("GATEFOLD_IMPL", "composed,reference", 1);  // composed is an mlp's
  EXPECT_EQ(chosen(desc), "reference");
  EXPECT_EQ(chosen(ValidCall(GATEFOLD_OP_MLP).desc), "composed");
  setenv("GATEFOLD_IMPL", "composed", 1);
  EXPECT_EQ(chosen(desc), unforced);
  setenv("GATEFOLD_IMPL", "", 1);
  EXPECT_EQ(chosen(desc), unforced);
}

TEST_F(Environment, ForcesANameForTheOpBeforeItAlone) {
  const gatefold_desc gate_up = ValidCall(GATEFOLD_OP_GATE_UP).desc;
  const gatefold_desc gemm = ValidCall(GATEFOLD_OP_GEMM).desc;
  const std::string unforced = chosen(gemm);
  setenv("GATEFOLD_IMPL", "gate_up=reference", 1);
  EXPECT_EQ(chosen(gate_up), "reference");
  EXPECT_EQ(chosen(gemm), unforced);
  EXPECT_EQ(products_of_an_mlp(), "gate_up by reference, gemm by " + unforced);
  setenv("GATEFOLD_IMPL", "gemm=reference,gate_up=", 1);
  EXPECT_NE(chosen(gate_up), "reference");
  EXPECT_EQ(chosen(gemm), "reference");
}

TEST_F(Environment, AnOpBeforeANameIsOneThatHasIt) {
  setenv("GATEFOLD_IMPL", "gateup=reference", 1);
  expect_refused(ValidCall(GATEFOLD_OP_GEMM).desc, {"GATEFOLD_IMPL", "\"gateup\" is no op", "gate_up"});
  setenv("GATEFOLD_IMPL", "gemm=composed", 1);  // an mlp's
  expect_refused(ValidCall(GATEFOLD_OP_GEMM).desc,
                 {"GATEFOLD_IMPL", "\"composed\" is no implementation of gemm", "reference"});
}

TEST_F(Environment, IsOutweighedByTheDescription) {
  setenv("GATEFOLD_IMPL", "reference", 1);
  gatefold_desc desc = ValidCall(GATEFOLD_OP_MLP).desc;
  EXPECT_EQ(chosen(desc), "reference");
  desc.implementation = "composed";
  EXPECT_EQ(chosen(desc), "composed");
}

TEST_F(Environment, ReachesTheProductsInsideAnMlp) {
  setenv("GATEFOLD_IMPL", "composed,reference", 1);
  EXPECT_EQ(products_of_an_mlp(), "gate_up by reference, gemm by reference");
}

TEST_F(Environment, AMisspeltNameIsRefusedWithTheKnownOnes) {
  setenv("GATEFOLD_IMPL", "reference,refrence", 1);
  for (const gatefold_op op : {GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP}) {
    expect_refused(ValidCall(op).desc, {"GATEFOLD_IMPL", "\"refrence\"", "composed", "reference"});
  }
  gatefold_desc desc = ValidCall(GATEFOLD_OP_MLP).desc;
  desc.implementation = "composed";  // the products inside look at the variable
  expect_refused(desc, {"GATEFOLD_IMPL", "\"refrence\""});
}

TEST_F(Environment, WhatAProductInsideAnMlpCantDoIsUnsupported) {
  setenv("GATEFOLD_IMPL", "reference:64x64", 1);
  gatefold_desc desc = ValidCall(GATEFOLD_OP_MLP).desc;
  desc.implementation = "composed";
  expect_refused(desc, {"reference has no kernel \"64x64\"", "gate_up"}, GATEFOLD_ERROR_UNSUPPORTED);
}

struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_F(Environment, MessagesDontFollowTheLocale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  gatefold_desc desc = ValidCall(GATEFOLD_OP_GEMM).desc;
  desc.hidden_size = 4096;
  desc.ld_x = 4000;
  expect_refused(desc, {"x: leading dimension 4000 < hidden_size 4096"});
  std::locale::global(before);
}

TEST_F(Environment, IsReadWhenThePlanIsMade) {
  const Plan plan({.op = GATEFOLD_OP_GEMM,
                   .dtype = GATEFOLD_DTYPE_FP32,
                   .device = GATEFOLD_DEVICE_CPU,
                   .hidden_size = 8,
                   .intermediate_size = 8});
  const std::string unforced = plan.implementation(1);
  setenv("GATEFOLD_IMPL", "reference", 1);
  EXPECT_EQ(plan.implementation(1), unforced);
}

}  // namespace
}  // namespace gatefold::test
