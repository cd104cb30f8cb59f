#include <algorithm>
#include <cmath>

#include "ops/targets.hpp"

// On the CPU: numbers of every size, which kernels that multiply parts of them must not lose; and which of two kernels
// a number of tokens gets.
namespace gatefold::test {
namespace {

std::vector<Target> fp32_products() {
  std::vector<Target> found = targets({GATEFOLD_OP_GEMM});
  std::erase_if(found, [](const Target& target) { return target.dtype != GATEFOLD_DTYPE_FP32; });
  return found;
}

class Exponents : public TargetTest {
 protected:
  // x and weights of term k times 2^of_x(k) and 2^of_weights(k), rounded to fp32.
  void expect_within_bounds_with(const auto& of_x, const auto& of_weights) {
    constexpr std::int64_t tokens = 9;
    constexpr std::int64_t D = 1090;  // more than 1024, and a rest
    constexpr std::int64_t F = 40;
    Random random = test_random();
    Experiment experiment(spec(tokens, D, F), random);
    for (std::int64_t k = 0; k < D; ++k) {
      for (std::int64_t t = 0; t < tokens; ++t) experiment.set_x(t, k, std::ldexp(experiment.x(t, k), of_x(k)));
      for (std::int64_t f = 0; f < F; ++f) {
        experiment.set_up_weight(f, k, std::ldexp(experiment.up_weight(f, k), of_weights(k)));
      }
    }
    ASSERT_TRUE(experiment.run(GetParam().implementation));
    const gatefold_error_report report = experiment.check(GATEFOLD_DATA_ANY);
    EXPECT_EQ(report.violations, 0) << report.max_bound_ratio << " of the bound, row " << report.worst_row << " column "
                                    << report.worst_column;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Exponents, testing::ValuesIn(fp32_products()), target_name);

TEST_P(Exponents, AllSmallOrLarge) {
  for (const int x : {-147, -135, -126, -110, -80, -40, 0, 35, 62, 68, 100, 120}) {
    for (const int weights : {-147, -130, -110, -60, 0, 40, 66, 120}) {
      if (std::abs(x + weights) > 110) continue;  // sums in fp32's range
      SCOPED_TRACE("2^" + std::to_string(x) + " 2^" + std::to_string(weights));
      expect_within_bounds_with([=](std::int64_t) { return x; }, [=](std::int64_t) { return weights; });
    }
  }
}

TEST_P(Exponents, OfEveryTermAnother) {
  for (const int most : {30, 66, 120}) {
    SCOPED_TRACE("up to 2^" + std::to_string(most));
    const auto exponent = [=](std::int64_t k) { return static_cast<int>(k * 7 % (2 * most + 1)) - most; };
    expect_within_bounds_with(exponent, [=](std::int64_t k) { return -exponent(k); });
  }
}

// Where a kernel is faster with more tokens than few, the others get the kernel after it.
struct Pair {
  gatefold_dtype dtype;
  const char* many;
};

class FewTokens : public testing::TestWithParam<Pair> {};

struct Found {
  std::string reason;  // it names the kernel
  std::vector<std::byte> bits;
};

Found run(Experiment& experiment, const std::string& implementation, bool batch_invariant) {
  Desc desc = experiment.desc(implementation);
  desc.batch_invariant = batch_invariant;
  const Plan plan(desc);
  experiment.run(plan);
  for (const Candidate& candidate : plan.explain(experiment.spec().tokens)) {
    if (candidate.chosen) return {candidate.reason, experiment.out_bytes()};
  }
  ADD_FAILURE() << "nothing chosen";
  return {};
}

bool names(const std::string& reason, const std::string& kernel) { return reason.find(kernel + ",") < reason.size(); }

TEST_P(FewTokens, GetAnotherKernelUnlessBitsMustNotChange) {
  const gatefold_dtype dtype = GetParam().dtype;
  const std::string many = GetParam().many;
  const std::string loops_many = "loops:" + many;
  const std::vector<Target> all = targets({GATEFOLD_OP_GATE_UP});
  const bool here = std::ranges::any_of(
      all, [&](const Target& target) { return target.dtype == dtype && target.implementation == loops_many; });
  if (!here) GTEST_SKIP() << many << " is not here";
  Random random = test_random();
  for (const std::int64_t tokens : {1, 6, 7, 64}) {
    SCOPED_TRACE(testing::Message() << tokens << " tokens");
    Experiment experiment({.op = GATEFOLD_OP_GATE_UP,
                           .dtype = dtype,
                           .activation = Activation::silu(),
                           .tokens = tokens,
                           .hidden_size = 700,
                           .intermediate_size = 96},
                          random);
    const std::string wanted = tokens <= 6 ? "avx512" : many;
    const Found chosen = run(experiment, "", false);
    EXPECT_TRUE(names(chosen.reason, wanted)) << chosen.reason;
    EXPECT_EQ(chosen.bits, run(experiment, "loops:" + wanted, false).bits);
    const Found invariant = run(experiment, "", true);
    EXPECT_TRUE(names(invariant.reason, many)) << invariant.reason;
    EXPECT_EQ(invariant.bits, run(experiment, loops_many, false).bits);
  }
}
INSTANTIATE_TEST_SUITE_P(All, FewTokens,
                         testing::Values(Pair{GATEFOLD_DTYPE_FP32, "amx_bf16x3"},
                                         Pair{GATEFOLD_DTYPE_FP16, "amx_bf16x2"}),
                         [](const auto& each) { return each.param.dtype == GATEFOLD_DTYPE_FP32 ? "fp32" : "fp16"; });

}  // namespace
}  // namespace gatefold::test
