#include "dispatch/steps.hpp"

#include <gtest/gtest.h>

// The order of an op's steps, and where their tensors and workspaces lie.
namespace gatefold {
namespace {

struct Call {
  std::string step;
  Operands operands;
};

class Recorder final : public Executor {
 public:
  Recorder(std::string name, std::size_t workspace, std::vector<Call>& calls, Status status = {})
      : name_(std::move(name)), workspace_(workspace), calls_(calls), status_(std::move(status)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return workspace_ * static_cast<std::size_t>(max_tokens);
  }
  std::string describe(std::int64_t tokens) const override { return name_ + " of " + std::to_string(tokens); }
  Status run(const Operands& operands) const override {
    calls_.push_back({name_, operands});
    return status_;
  }

 private:
  std::string name_;
  std::size_t workspace_;
  std::vector<Call>& calls_;
  Status status_;
};

Operands into_first(const Operands& whole, const Buffers& buffers) {
  Operands operands;
  operands.tokens = whole.tokens;
  operands.x = whole.x;
  operands.out = buffers[0];
  return operands;
}

Operands from_first_into_second(const Operands& whole, const Buffers& buffers) {
  Operands operands;
  operands.tokens = whole.tokens;
  operands.x = buffers[0];
  operands.out = buffers[1];
  return operands;
}

constexpr std::int64_t tokens = 3;
alignas(256) std::byte workspace[8192];

Operands whole_operands(const Steps& steps) {
  Operands whole;
  whole.tokens = tokens;
  whole.x = workspace + 4096;
  whole.device = 3;
  whole.workspace = workspace;
  whole.workspace_size = steps.workspace_size(tokens);
  return whole;
}

TEST(Steps, RunInOrderWithBuffersBetweenThem) {
  std::vector<Call> calls;
  std::vector<Step> list;
  list.push_back({std::make_unique<Recorder>("first", 40, calls), into_first});
  list.push_back({std::make_unique<Recorder>("second", 100, calls), from_first_into_second});
  const Steps steps(Arena({100, 7}), std::move(list));
  // 300 and 21 bytes, each rounded up to 256, and the larger of 120 and 300.
  EXPECT_EQ(steps.workspace_size(tokens), 512U + 256 + 300);
  EXPECT_EQ(steps.workspace_size(0), 0U);
  EXPECT_EQ(steps.describe(5), "first of 5, second of 5");

  const Operands whole = whole_operands(steps);
  ASSERT_TRUE(steps.run(whole).ok());
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].step, "first");
  EXPECT_EQ(calls[0].operands.x, whole.x);
  EXPECT_EQ(calls[0].operands.out, workspace);
  EXPECT_EQ(calls[1].step, "second");
  EXPECT_EQ(calls[1].operands.x, workspace);
  EXPECT_EQ(calls[1].operands.out, workspace + 512);
  for (const Call& call : calls) {
    EXPECT_EQ(call.operands.workspace, workspace + 768);
    EXPECT_EQ(call.operands.workspace_size, 300U);
    EXPECT_EQ(call.operands.device, 3) << "is looked up once, not by each step";
  }
}

TEST(Steps, WhatWritesNothingIsLeftOut) {
  std::vector<Call> calls;
  std::vector<Step> list;
  list.push_back({std::make_unique<Recorder>("first", 0, calls), into_first, true});
  list.push_back({std::make_unique<Recorder>("second", 0, calls), from_first_into_second});
  const Steps steps(Arena({0, 8}), std::move(list));
  ASSERT_TRUE(steps.run(whole_operands(steps)).ok());
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].step, "second");
}

TEST(Steps, AFailureEndsTheRun) {
  std::vector<Call> calls;
  std::vector<Step> list;
  list.push_back({std::make_unique<Recorder>("first", 0, calls, unsupported("too odd")), into_first});
  list.push_back({std::make_unique<Recorder>("second", 0, calls), from_first_into_second});
  const Steps steps(Arena({8, 8}), std::move(list));
  const Status status = steps.run(whole_operands(steps));
  EXPECT_EQ(status.code(), GATEFOLD_ERROR_UNSUPPORTED);
  EXPECT_EQ(status.message(), "too odd");
  EXPECT_EQ(calls.size(), 1U);
}

TEST(Steps, AnArenaHasSoManyBuffers) {
  EXPECT_NO_THROW(Arena(std::vector<std::size_t>(most_buffers, 8)));
  EXPECT_THROW(Arena(std::vector<std::size_t>(most_buffers + 1, 8)), StatusError);
}

}  // namespace
}  // namespace gatefold
