#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cuda/family/products.hpp"
#include "gated_problem.hpp"

// What every family of kernels does on the host, of one whose kernels are three numbers of columns.
namespace gatefold::cuda {
namespace {

using sm90::gated_by_memory_problem;
using sm90::gated_problem;

struct ThreeKernels {
  struct Kernel {
    std::int64_t columns;
    Status (*launch)(const Problem&, const Operands&, const DeviceProperties&, cudaStream_t);
  };
  struct Machine {
    int multiprocessors;
  };
  static constexpr std::int64_t limit = 1000;

  int* asked = nullptr;                                            // how often the choice was made
  std::int64_t wanted = std::numeric_limits<std::int64_t>::max();  // the most tokens for which it is to be chosen

  std::string_view name() const { return "three"; }
  std::vector<Kernel> compiled(const Problem& p) const {
    if (p.types.x == DType::fp32) return {};
    return {{8, nullptr}, {16, nullptr}, {24, nullptr}};
  }
  std::string name_of(const Kernel& kernel) const { return std::to_string(kernel.columns); }
  bool takes_row_scale(Op /*op*/) const { return false; }
  bool holds_back_the_next(const Problem& /*problem*/) const { return false; }
  bool batch_invariant() const { return false; }
  CopiedTensors copied(Op op) const { return {.gate = op == Op::gate_up}; }
  std::string refusal(const Problem& p) const { return p.intermediate_size > 4096 ? "too wide" : ""; }
  bool fits(const Kernel& kernel, const Problem& p) const { return p.intermediate_size % kernel.columns == 0; }
  std::string nothing_fits(const Problem& /*problem*/) const { return "nothing fits"; }
  Verdict verdict(std::span<const Kernel> /*kernels*/, const Problem& /*problem*/) const {
    return {.eligible = true, .reason = "three kernels", .max_tokens = wanted};
  }
  std::size_t workspace_size(std::span<const Kernel> kernels, const Problem& p, std::int64_t max_tokens) const {
    return kernels.size() * static_cast<std::size_t>(p.intermediate_size * max_tokens);
  }
  std::int64_t most_tokens(const Problem& /*problem*/) const { return limit; }
  Machine machine_of(const DeviceProperties& device, std::span<const Kernel> /*kernels*/) const {
    return {device.multiprocessors};
  }
  // The widest that has as many columns as tokens at most, on a device with any multiprocessors.
  const Kernel* choose(std::span<const Kernel> kernels, const Problem& /*problem*/, std::int64_t tokens,
                       const Machine& machine) const {
    if (asked != nullptr) ++*asked;
    const Kernel* best = nullptr;
    for (const Kernel& kernel : kernels) {
      if (machine.multiprocessors > 0 && kernel.columns <= tokens) best = &kernel;
    }
    return best;
  }
  std::string describe(const Kernel& kernel, const Problem&, std::int64_t, const Machine&) const {
    return name_of(kernel);
  }
  std::string nothing_runs(std::span<const Kernel> kernels) const { return name_of(kernels.front()) + " runs nowhere"; }
};

const DeviceProperties device{.index = 0, .name = "a device", .capability = 90, .multiprocessors = 2};

Problem problem_of(Problem problem) {
  problem.ld_x = problem.ld_up = problem.hidden_size;
  problem.ld_gate = problem.op == Op::gate_up ? problem.hidden_size : problem.intermediate_size;
  problem.ld_out = problem.intermediate_size;
  return problem;
}

// The halves of weights that one descriptor has to hold, and those that have one each.
TEST(CopiedTensors, AreWithinReachOfEachOther) {
  alignas(16) static std::byte memory[64];
  const Operands apart{.x = memory, .gate = memory + 48, .up = memory, .out = memory};
  EXPECT_TRUE((CopiedTensors{.gate = true, .out = true}.accepts(apart)));
  EXPECT_TRUE((CopiedTensors{.gate = true, .out = true, .reach = 49}.accepts(apart)));
  EXPECT_FALSE((CopiedTensors{.gate = true, .out = true, .reach = 48}.accepts(apart)));
  Operands same = apart;
  same.up = same.gate;
  EXPECT_TRUE((CopiedTensors{.gate = true, .out = true}.accepts(same)));
  EXPECT_FALSE((CopiedTensors{.gate = true, .out = true, .reach = 49}.accepts(same)));
  Operands packed = apart;
  packed.up = nullptr;
  EXPECT_TRUE((CopiedTensors{.gate = true, .out = true, .reach = 16}.accepts(packed)));
}

std::string chosen(const Executor& executor, std::int64_t tokens) {
  const ThreeKernels::Kernel* kernel = nullptr;
  const auto& family = dynamic_cast<const FamilyExecutor<ThreeKernels>&>(executor);
  const Status status = family.choose(tokens, device, kernel);
  return status.ok() ? std::to_string(kernel->columns) : status.message();
}

TEST(Family, TakesWhatItsKernelsCan) {
  const FamilyProducts<ThreeKernels> family{ThreeKernels{}};
  Problem problem = problem_of(gated_problem(64, 48));
  const Verdict verdict = family.supports(problem);
  EXPECT_TRUE(verdict.eligible);
  EXPECT_EQ(verdict.max_tokens, ThreeKernels::limit);
  EXPECT_FALSE(verdict.every_pointer);
  EXPECT_EQ(FamilyProducts<ThreeKernels>{{.wanted = 7}}.supports(problem).max_tokens, 7);
  const auto refused = [&](auto change) {
    Problem changed = problem;
    change(changed);
    const Verdict refusal = family.supports(changed);
    return refusal.eligible ? "" : refusal.reason;
  };
  EXPECT_EQ(refused([](Problem& p) { p.types = ElementTypes::all(DType::fp32); }), "not compiled for gate_up in fp32");
  EXPECT_EQ(refused([](Problem& p) { p.types.weights = DType::fp16; }), "takes elements of one type only");
  EXPECT_EQ(refused([](Problem& p) { p.row_scale = true; }), "takes no row_scale");
  EXPECT_EQ(refused([](Problem& p) { p.hidden_size = 0; }), "needs hidden_size > 0");
  EXPECT_EQ(refused([](Problem& p) { p.intermediate_size = 8192; }), "too wide");
  EXPECT_EQ(refused([](Problem& p) { p.intermediate_size = 47; }), "nothing fits");
  EXPECT_EQ(refused([](Problem& p) { p.ld_x = 71; }), "ld_x: not a multiple of 16 bytes");
  EXPECT_EQ(refused([](Problem& p) { p.ld_gate = 68; }), "ld_gate: not a multiple of 16 bytes");
  EXPECT_EQ(refused([](Problem& p) { p.ld_up = 65; }), "ld_up: not a multiple of 16 bytes");
  EXPECT_EQ(refused([](Problem& p) { p.ld_out = 49; }), "") << "its output goes element by element";
  problem = problem_of(gated_by_memory_problem(64, 48));
  EXPECT_EQ(refused([](Problem& p) { p.ld_gate = 49; }), "") << "and so do gate values";
}

TEST(Family, AcceptsPointersThatItCanCopyFrom) {
  const FamilyProducts<ThreeKernels> family{ThreeKernels{}};
  const auto executor = family.prepare(problem_of(gated_problem(64, 48)));
  alignas(16) std::byte memory[64];
  const auto accepted = [&](auto change) {
    Operands operands{.tokens = 1, .x = memory, .gate = memory, .up = memory, .out = memory};
    change(operands);
    return executor->accepts(operands);
  };
  EXPECT_TRUE(accepted([](Operands&) {}));
  EXPECT_FALSE(accepted([&](Operands& o) { o.x = memory + 8; }));
  EXPECT_FALSE(accepted([&](Operands& o) { o.gate = memory + 2; }));
  EXPECT_FALSE(accepted([&](Operands& o) { o.up = memory + 15; }));
  EXPECT_TRUE(accepted([&](Operands& o) { o.out = memory + 2; }));
}

TEST(Family, ForcesOneKernelByItsName) {
  const FamilyProducts<ThreeKernels> family{ThreeKernels{}};
  const Problem problem = problem_of(gated_problem(64, 48));
  EXPECT_EQ(family.kernels(problem), (std::vector<std::string>{"8", "16", "24"}));
  EXPECT_EQ(family.kernels(problem_of(gated_problem(64, 72))), (std::vector<std::string>{"8", "24"}));
  EXPECT_EQ(chosen(*family.prepare(problem), 100), "24");
  EXPECT_EQ(chosen(*family.prepare_kernel(problem, "16"), 100), "16");
  EXPECT_EQ(
      chosen(*family.prepare(problem), 7),
      "device: 0 (a device) of compute capability 9.0, with 0 bytes of shared memory for a block: 8 runs nowhere");
}

TEST(Family, SaysWhatWorkspaceItsKernelsNeed) {
  const FamilyProducts<ThreeKernels> family{ThreeKernels{}};
  const Problem problem = problem_of(gated_problem(64, 48));
  EXPECT_EQ(family.prepare(problem)->workspace_size(100), 3U * 48 * 100);
  EXPECT_EQ(family.prepare_kernel(problem, "24")->workspace_size(100), 1U * 48 * 100);
}

TEST(Family, LimitsTokensAlsoOfAKernelThatIsForced) {
  const FamilyProducts<ThreeKernels> family{ThreeKernels{}};
  const Problem problem = problem_of(gated_problem(64, 48));
  for (const auto& executor : {family.prepare(problem), family.prepare_kernel(problem, "24")}) {
    EXPECT_EQ(chosen(*executor, ThreeKernels::limit), "24");
    EXPECT_EQ(chosen(*executor, ThreeKernels::limit + 1),
              "tokens: 1001, three takes at most 1000 with intermediate_size 48");
  }
}

// --- Choices ---

TEST(Choices, AreTheSameWithinARange) {
  for (std::int64_t tokens = 0; tokens <= Choices::most_tokens + 100; ++tokens) {
    const std::int64_t last = Choices::last_of_range(tokens);
    EXPECT_GE(last, tokens);
    EXPECT_LT(last, tokens + Choices::step);
    EXPECT_EQ(Choices::last_of_range(last), last);
    if (tokens <= 64 || tokens > Choices::most_tokens) {
      EXPECT_EQ(last, tokens);
    }
    // The eights of tokens of which tiles are made are as many for all of a range.
    EXPECT_EQ((last + 7) / 8, (tokens + 7) / 8);
  }
}

TEST(Choices, AreMadeOnceForEachDeviceAndRange) {
  Choices choices(2);
  int made = 0;
  const auto choose = [&](int offset) {
    return [&made, offset](std::int64_t last) {
      ++made;
      return static_cast<int>(last % 7) - 1 + offset;
    };
  };
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t tokens = 0; tokens <= Choices::most_tokens; ++tokens) {
      const std::int64_t last = Choices::last_of_range(tokens);
      ASSERT_EQ(choices(0, tokens, choose(0)), last % 7 - 1) << tokens;
      ASSERT_EQ(choices(1, tokens, choose(100)), last % 7 + 99) << tokens;
    }
  }
  EXPECT_EQ(made, 2 * (65 + (Choices::most_tokens - 64) / 8));
}

TEST(Choices, OfManyTokensOrAnotherDeviceAreMadeAnew) {
  Choices choices(1);
  int made = 0;
  for (const std::int64_t tokens : {Choices::most_tokens + 1, std::numeric_limits<std::int64_t>::max()}) {
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(choices(0, tokens, [&](std::int64_t last) { return ++made, last == tokens; }), 1);
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(choices(1, 1, [&](std::int64_t) { return ++made, 5; }), 5);
  EXPECT_EQ(made, 6);
}

TEST(Choices, HoldEveryNumberOfAKernel) {
  Choices choices(1);
  int made = 0;
  for (int index = -1; index < Choices::most_kernels; ++index) {
    const int tokens = index + 1 <= 64 ? index + 1 : 64 + (index - 63) * 16;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(choices(0, tokens, [&](std::int64_t) { return ++made, index; }), index);
  }
  EXPECT_EQ(made, Choices::most_kernels + 1);
}

}  // namespace
}  // namespace gatefold::cuda
