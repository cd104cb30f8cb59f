#include "dispatch/selection.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "dispatch/registry.hpp"

// The choice among a list of made-up implementations.
namespace gatefold {
namespace {

class FakeExecutor final : public Executor {
 public:
  FakeExecutor(std::size_t bytes_per_token, std::string details)
      : bytes_per_token_(bytes_per_token), details_(std::move(details)) {}
  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return bytes_per_token_ * static_cast<std::size_t>(max_tokens);
  }
  std::string describe(std::int64_t /*tokens*/) const override { return details_; }
  Status run(const Operands& /*operands*/) const override { return {}; }

 private:
  std::size_t bytes_per_token_;
  std::string details_;
};

class Fake final : public Implementation {
 public:
  Fake(std::string_view name, Verdict verdict, std::size_t bytes_per_token = 0, std::string details = {})
      : name_(name), verdict_(std::move(verdict)), bytes_per_token_(bytes_per_token), details_(std::move(details)) {}
  std::string_view name() const override { return name_; }
  Verdict supports(const Problem& /*problem*/) const override { return verdict_; }
  std::unique_ptr<Executor> prepare(const Problem& /*problem*/) const override {
    ++prepared;
    return std::make_unique<FakeExecutor>(bytes_per_token_, details_);
  }
  std::vector<std::string> kernels(const Problem& /*problem*/) const override { return kernel_names; }
  std::unique_ptr<Executor> prepare_kernel(const Problem& /*problem*/, std::string_view kernel) const override {
    return std::make_unique<FakeExecutor>(bytes_per_token_, std::string(kernel));
  }

  mutable int prepared = 0;
  std::vector<std::string> kernel_names;

 private:
  std::string_view name_;
  Verdict verdict_;
  std::size_t bytes_per_token_;
  std::string details_;
};

std::vector<const Implementation*> registered;            // what implementations() answers
std::vector<const Implementation*> registered_elsewhere;  // and for an mlp

class SelectionTest : public testing::Test {
 protected:
  SelectionTest() { unsetenv("GATEFOLD_IMPL"); }
  ~SelectionTest() override {
    registered.clear();
    registered_elsewhere.clear();
  }

  static Selection make(const std::vector<const Fake*>& list, std::string_view forced = {}) {
    registered.assign(list.begin(), list.end());
    Selection selection;
    const Status status = Selection::make({}, forced, selection);
    EXPECT_TRUE(status.ok()) << status.message();
    return selection;
  }
  static std::string_view chosen(const Selection& selection, std::int64_t tokens) {
    return selection.choose(tokens).implementation->name();
  }

  const Fake small{"small", {true, "for a few tokens", 0, 16}, 1000};
  const Fake middle{"middle", {true, "for more", 8, 64}, 100, "tile 64"};
  const Fake unable{"unable", {false, "needs an even D"}};
  const Fake general{"general", {true, "takes everything"}, 1};
  const Fake last{"last", {true, "never reached"}, 1000000};
};

TEST_F(SelectionTest, TakesTheFirstThatWantsTheTokens) {
  const Selection selection = make({&unable, &small, &middle, &general, &last});
  EXPECT_EQ(chosen(selection, 0), "small");
  EXPECT_EQ(chosen(selection, 16), "small");
  EXPECT_EQ(chosen(selection, 17), "middle");
  EXPECT_EQ(chosen(selection, 64), "middle");
  EXPECT_EQ(chosen(selection, 65), "general");
}

TEST_F(SelectionTest, PreparesOnlyWhatCanBeReached) {
  make({&unable, &small, &middle, &general, &last});
  EXPECT_EQ(unable.prepared, 0);
  EXPECT_EQ(small.prepared, 1);
  EXPECT_EQ(middle.prepared, 1);
  EXPECT_EQ(general.prepared, 1);
  EXPECT_EQ(last.prepared, 0);
}

TEST_F(SelectionTest, WorkspaceIsTheMostThatAnyNumberOfTokensUpToTheLimitTakes) {
  const Selection selection = make({&small, &middle, &general});
  EXPECT_EQ(selection.workspace_size(1), 1000U);
  EXPECT_EQ(selection.workspace_size(16), 16000U);
  EXPECT_EQ(selection.workspace_size(1000), 16000U);   // small takes no more than 16
  EXPECT_EQ(selection.workspace_size(20000), 20000U);  // general's 1 byte per token
}

TEST_F(SelectionTest, ForcedTakesEveryNumberOfTokens) {
  const Selection selection = make({&small, &middle, &general}, "middle");
  EXPECT_TRUE(selection.forced());
  EXPECT_EQ(chosen(selection, 1), "middle");
  EXPECT_EQ(chosen(selection, 100000), "middle");
  EXPECT_EQ(selection.workspace_size(1000), 100000U);
  EXPECT_EQ(small.prepared + general.prepared, 0);
}

TEST_F(SelectionTest, UnknownNameIsRefusedWithTheKnownOnes) {
  registered = {&small, &general};
  Selection selection;
  const Status status = Selection::make({}, "fast", selection);
  EXPECT_EQ(status.code(), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("\"fast\""), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("small, general"), std::string::npos) << status.message();
}

TEST_F(SelectionTest, ForcedThatCannotIsUnsupportedAndSaysWhy) {
  registered = {&unable, &general};
  Selection selection;
  const Status status = Selection::make({}, "unable", selection);
  EXPECT_EQ(status.code(), GATEFOLD_ERROR_UNSUPPORTED);
  EXPECT_NE(status.message().find("needs an even D"), std::string::npos) << status.message();
}

TEST_F(SelectionTest, AKernelCanBeForcedByItsName) {
  Fake several{"several", {true, "has two kernels"}};
  several.kernel_names = {"64x64", "128x64 cluster 1x2"};
  const Selection selection = make({&small, &several, &general}, "several:128x64 cluster 1x2");
  EXPECT_EQ(chosen(selection, 1), "several");
  EXPECT_EQ(selection.reason(1, 1), "forced by name; 128x64 cluster 1x2");
  EXPECT_EQ(several.prepared + small.prepared + general.prepared, 0);
  EXPECT_EQ(selection.kernels({}, "several"), several.kernel_names);
  EXPECT_TRUE(selection.kernels({}, "small").empty());
  EXPECT_TRUE(selection.kernels({}, "elsewhere").empty());
}

TEST_F(SelectionTest, UnknownKernelIsUnsupportedAndTheKnownOnesAreNamed) {
  Fake several{"several", {true, "has two kernels"}};
  several.kernel_names = {"64x64", "128x64"};
  registered = {&several, &general};
  Selection selection;
  const auto message = [&](std::string_view forced) {
    const Status status = Selection::make({}, forced, selection);
    EXPECT_EQ(status.code(), GATEFOLD_ERROR_UNSUPPORTED) << forced;
    return status.message();
  };
  EXPECT_NE(message("several:32x32").find("no kernel \"32x32\""), std::string::npos) << message("several:32x32");
  EXPECT_NE(message("several:32x32").find("64x64, 128x64"), std::string::npos) << message("several:32x32");
  EXPECT_NE(message("several:").find("no kernel \"\""), std::string::npos) << message("several:");
  EXPECT_NE(message("general:64x64").find("no kernel \"64x64\""), std::string::npos) << message("general:64x64");
}

TEST_F(SelectionTest, EmptyListIsUnsupported) {
  registered.clear();
  Selection selection;
  EXPECT_EQ(Selection::make({}, "", selection).code(), GATEFOLD_ERROR_UNSUPPORTED);
}

TEST_F(SelectionTest, EveryCandidateHasItsReason) {
  const Selection selection = make({&unable, &small, &middle, &general});
  EXPECT_EQ(selection.reason(0, 32), "needs an even D");
  EXPECT_NE(selection.reason(1, 32).find("0 to 16 tokens, not 32"), std::string::npos) << selection.reason(1, 32);
  EXPECT_EQ(selection.reason(2, 32), "for more; tile 64");
  EXPECT_NE(selection.reason(3, 32).find("middle comes first"), std::string::npos) << selection.reason(3, 32);
  const Selection forced = make({&unable, &small, &middle, &general}, "middle");
  EXPECT_EQ(forced.reason(2, 1), "forced by name; tile 64");
  EXPECT_NE(forced.reason(1, 1).find("middle was forced"), std::string::npos) << forced.reason(1, 1);
}

TEST_F(SelectionTest, EnvironmentForcesTheFirstNameOfThisList) {
  const auto forced = [](const char* value) {
    setenv("GATEFOLD_IMPL", value, 1);
    std::string name = "not set";
    const Status status = forced_by_environment(Op::gemm, Device::cpu, name);
    unsetenv("GATEFOLD_IMPL");
    EXPECT_TRUE(status.ok()) << status.message();
    return name;
  };
  registered = {&small, &general};
  registered_elsewhere = {&last};
  EXPECT_EQ(forced("last,general,small"), "general");
  EXPECT_EQ(forced("last:64x64,general:128x64,small"), "general:128x64");
  EXPECT_EQ(forced("gate_up=small,gemm=general:64x64,small"), "general:64x64");
  EXPECT_EQ(forced("gate_up=small"), "");
  EXPECT_EQ(forced("last"), "");
  EXPECT_EQ(forced(""), "");
}

TEST_F(SelectionTest, EnvironmentIsRefusedIfNoOpHasTheName) {
  registered = {&small, &general};
  registered_elsewhere = {&last};
  for (const char* value : {"smal", "general,smal", "smal:64x64,general"}) {
    setenv("GATEFOLD_IMPL", value, 1);
    std::string name;
    const Status status = forced_by_environment(Op::gemm, Device::cpu, name);
    EXPECT_EQ(status.code(), GATEFOLD_ERROR_INVALID_ARGUMENT) << value;
    EXPECT_EQ(status.message(),
              "GATEFOLD_IMPL: \"smal\" is no implementation in this build, which has small, "
              "general, last");
  }
  unsetenv("GATEFOLD_IMPL");
}

}  // namespace

std::span<const Implementation* const> implementations(Op op, Device /*device*/) {
  return op == Op::mlp ? registered_elsewhere : registered;
}

}  // namespace gatefold
