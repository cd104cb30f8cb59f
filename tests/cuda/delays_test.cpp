#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "differences.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"

// Random delays at every barrier and copy of the sm_90 kernels (CMake's GATEFOLD_TEST_DELAYS): whoever comes first, the
// result is the same.
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

  // Tails in D (8 of 64) and mostly in T and F.
  Spec spec_of(std::int64_t tokens, std::int64_t intermediate_size) const {
    return spec(tokens, 520, intermediate_size);
  }

  // For each kernel that the cost model takes for some shape of a grid, by its description: the smallest and the
  // largest of its shapes. The smallest has a few tiles, the largest several for each multiprocessor.
  std::map<std::string, std::vector<Spec>> shapes_by_kernel() const {
    constexpr std::int64_t most_outputs = 10'000'000;
    std::map<std::string, std::vector<Spec>> shapes;
    for (const std::int64_t F : {520, 1000, 2056, 3080, 4104, 8200, 12296, 20008}) {
      for (const std::int64_t T : {65, 130, 300, 700, 1100}) {
        if (T * F <= most_outputs) shapes[kernel_of(spec_of(T, F))].push_back(spec_of(T, F));
      }
    }
    const auto outputs = [](const Spec& s) { return s.tokens * s.intermediate_size; };
    for (auto& [kernel, specs] : shapes) {
      const auto [least, most] = std::ranges::minmax(specs, {}, outputs);
      specs = {least, most};
    }
    return shapes;
  }

  // What the plan says of the kernel that it will launch.
  std::string kernel_of(const Spec& s) const {
    Desc desc{.op = s.op, .dtype = s.dtype, .device = GATEFOLD_DEVICE_CUDA};
    if (uses_layout(s.op)) desc.layout = s.layout;
    if (uses_activation(s.op)) desc.activation = s.activation;
    desc.hidden_size = s.hidden_size;
    desc.intermediate_size = s.intermediate_size;
    desc.implementation = GetParam().implementation;
    for (const Candidate& candidate : Plan(desc).explain(s.tokens)) {
      if (candidate.chosen) return candidate.reason;
    }
    return {};
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

  void expect_same_bits_under_every_seed(const Spec& s, const std::string& kernel, Random& random) {
    SCOPED_TRACE(describe(s));
    Experiment experiment(s, random);
    const Plan plan(experiment.desc(GetParam().implementation));
    set_delay_seed(0);
    experiment.run(plan);
    Differences differences(experiment.out_bytes());
    Lane lane(experiment, plan);
    const double at_once = run(experiment, plan, lane, differences, 0);
    EXPECT_EQ(differences.words(), 0U) << "differ without a delay";
    const double delayed = run(experiment, plan, lane, differences, 1);
    EXPECT_EQ(differences.words(), 0U) << "differ over " << seeds << " seeds";
    // The ring hides a part of them, and the comparison takes a while too.
    EXPECT_GT(delayed, 1.2 * at_once) << "seconds: the delays are not there";
    lane.out.download();
    lane.out.expect_surroundings_unchanged("out");
    std::printf("  %-90s T=%-5lld F=%-6lld %6.1f us, delayed %7.1f us\n", kernel.c_str(),
                static_cast<long long>(s.tokens), static_cast<long long>(s.intermediate_size), at_once / seeds * 1e6,
                delayed / seeds * 1e6);
  }
};

// The kernels that have delays, whether or not this machine can run them.
std::vector<Target> delayed_targets() {
  std::vector<Target> result;
  for (const Target& target : targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GATE_UP})) {
    if (target.implementation == "sm90" && target.dtype != GATEFOLD_DTYPE_FP32) result.push_back(target);
  }
  return result;
}
INSTANTIATE_TEST_SUITE_P(Sm90, Delays, testing::ValuesIn(delayed_targets()), target_name);

TEST_P(Delays, ChangeNoBit) {
  Random random = test_random();
  std::map<std::string, std::vector<Spec>> shapes;
  try {
    shapes = shapes_by_kernel();
  } catch (const Error& error) {
    ASSERT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED) << error.what();
    GTEST_SKIP() << error.what();
  }
  EXPECT_GT(shapes.size(), 1U) << "the grid of shapes should lead to every kernel";
  for (const auto& [kernel, specs] : shapes) {
    for (const Spec& s : specs) expect_same_bits_under_every_seed(s, kernel, random);
  }
}

}  // namespace
}  // namespace gatefold::test
