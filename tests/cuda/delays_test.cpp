#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "differences.hpp"
#include "kernel_grid.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"
#include "support/kernels_of.hpp"
#include "swap_ffn_lane.hpp"

// Random delays at every barrier and copy of the kernels that the copy engine serves (CMake's GATEFOLD_TEST_DELAYS):
// whoever comes first, the result is the same.
namespace gatefold::test {
namespace {

constexpr int seeds = 200;

// The library reads it at each launch. 0: no delays.
void set_delay_seed(int seed) {
  require(
      setenv("GATEFOLD_TEST_DELAY_SEED", std::to_string(seed).c_str(), 1) == 0 ? cudaSuccess : cudaErrorInvalidValue,
      "setenv");
}

class Delays : public TargetTest {
 protected:
  void SetUp() override {
    if (!GATEFOLD_TEST_DELAYS) GTEST_SKIP() << "the library was built without GATEFOLD_TEST_DELAYS";
  }
  void TearDown() override {
    set_delay_seed(0);
    TargetTest::TearDown();
  }

  // Seconds of one run under each seed from `first` on, each output compared.
  static double run(const Experiment& experiment, const Plan& plan, Lane& lane, Differences& differences, int first) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < seeds; ++i) {
      set_delay_seed(first == 0 ? 0 : first + i);
      lane.run(experiment, plan);
      differences.count_and_poison(lane.out.device(), lane.stream.get());
    }
    lane.stream.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static void expect_same_bits_under_every_seed(Experiment& experiment, const std::string& kernel) {
    const Spec& s = experiment.spec();
    SCOPED_TRACE(kernel + ", " + describe(s));
    const Plan plan(experiment.desc(kernel));
    set_delay_seed(0);
    experiment.run(plan);
    Differences differences(experiment.out_bytes());
    Lane lane(experiment, plan);
    const double at_once = run(experiment, plan, lane, differences, 0);
    EXPECT_EQ(differences.words(), 0U) << "differ without a delay";
    const double delayed = run(experiment, plan, lane, differences, 1);
    EXPECT_EQ(differences.words(), 0U) << "differ over " << seeds << " seeds";
    lane.out.download();
    lane.out.expect_surroundings_unchanged("out");
    std::printf("  %-50s T=%-5lld F=%-6lld %6.1f us, delayed %7.1f us\n", kernel.c_str(),
                static_cast<long long>(s.tokens), static_cast<long long>(s.intermediate_size), at_once / seeds * 1e6,
                delayed / seeds * 1e6);
  }
};

// The kernels that have delays, whether or not this machine can run them.
std::vector<Target> delayed_targets() {
  std::vector<Target> result;
  for (const Target& target : targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP})) {
    if (target.dtype == GATEFOLD_DTYPE_FP32) continue;
    const bool others = target.implementation == "sm80" || target.implementation == "sm90_decode";
    if (target.implementation == "sm90" || (others && target.op != GATEFOLD_OP_GEMM_GATED)) result.push_back(target);
  }
  return result;
}

bool has_delays(const std::string& kernel) {
  return kernel.starts_with("sm90") || kernel.find(" boxes") != std::string::npos;
}

INSTANTIATE_TEST_SUITE_P(CopyEngine, Delays, testing::ValuesIn(delayed_targets()), target_name);

TEST_P(Delays, ChangeNoBit) {
  Random random = test_random();
  for (const GridShape& shape : kernel_grid) {
    const Spec s = spec(shape.tokens, shape.hidden_size, shape.intermediate_size);
    Experiment experiment(s, random);
    if (!experiment.run(GetParam().implementation)) {
      GTEST_SKIP() << GetParam().implementation << " takes none of these descriptions";
    }
    for (const std::string& kernel : kernels_of(s, GetParam().implementation)) {
      if (has_delays(kernel)) expect_same_bits_under_every_seed(experiment, kernel);
    }
  }
}

// The MLPs of an event in one launch, whose blocks wait for one another and whose two products use one ring's memory.
class SwapFfnDelays : public testing::TestWithParam<gatefold_dtype> {
 protected:
  void SetUp() override {
    if (!GATEFOLD_TEST_DELAYS) GTEST_SKIP() << "the library was built without GATEFOLD_TEST_DELAYS";
    if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { set_delay_seed(0); }

  static void expect_same_bits_under_every_seed(const SwapFfnDesc& desc, std::int64_t batch, Random& random) {
    SCOPED_TRACE(testing::Message() << batch * desc.cores << " rows, D " << desc.hidden_size << ", F "
                                    << desc.intermediate_size);
    set_delay_seed(0);
    SwapFfnExperiment experiment(desc, batch, random);
    if (!is_chained(experiment.plan, batch)) return;  // of a device with fewer multiprocessors
    SwapFfnRepeats steps(experiment, desc, batch);
    const auto start = std::chrono::steady_clock::now();
    for (int seed = 1; seed <= seeds; ++seed) {
      set_delay_seed(seed);
      steps.enqueue();
      wait_for_end(steps.stream());
    }
    const std::chrono::duration<double> delayed = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(steps.differing_words(), 0U) << "differ over " << seeds << " seeds";
    std::printf("  %lld rows, D %lld, F %lld: delayed %.0f us\n", static_cast<long long>(batch * desc.cores),
                static_cast<long long>(desc.hidden_size), static_cast<long long>(desc.intermediate_size),
                delayed.count() / seeds * 1e6);
  }
};
INSTANTIATE_TEST_SUITE_P(Chains, SwapFfnDelays, testing::Values(GATEFOLD_DTYPE_BF16, GATEFOLD_DTYPE_FP16),
                         [](const auto& test) { return name(test.param); });

TEST_P(SwapFfnDelays, ChangeNoBitOfAChain) {
  Random random = test_random();
  SwapFfnDesc desc = real_desc(GetParam());
  desc.events = desc.k_ffn = 3;
  expect_same_bits_under_every_seed(desc, 1, random);
  struct Sizes {
    std::int64_t hidden_size, intermediate_size, rows;
  };
  for (const Sizes& sizes :
       {Sizes{264, 1000, 300}, {64, 72, 132}, {2056, 264, 128}, {72, 2056, 512}, {520, 1048, 512}, {64, 72, 2048}}) {
    desc.hidden_size = sizes.hidden_size;
    desc.intermediate_size = sizes.intermediate_size;
    desc.cores = sizes.rows;
    expect_same_bits_under_every_seed(desc, 1, random);
  }
}

}  // namespace
}  // namespace gatefold::test
