#include <cstdlib>

#include "ops/targets.hpp"

// What a caller gets who forces nothing.
namespace gatefold::test {
namespace {

// Every pair of op and element type, once: by way of the first implementation in each list.
std::vector<Target> unforced() {
  std::vector<Target> result;
  for (Target& target : all_targets()) {
    if (target.implementation != gatefold_implementation_name(target.op, device_memory().device(), 0)) continue;
    target.implementation = "";
    result.push_back(target);
  }
  return result;
}

class Choice : public TargetTest {};
std::string unforced_name(const testing::TestParamInfo<Target>& target) {
  return name(target.param.op) + "_" + name(target.param.dtype);
}
INSTANTIATE_TEST_SUITE_P(All, Choice, testing::ValuesIn(unforced()), unforced_name);

TEST_P(Choice, IsRightAndListed) {
  Random random = test_random();
  for (const std::int64_t tokens : {1, 7, 8, 16, 129}) {
    const Spec s = spec(tokens, 100, 72);
    expect_right(s, random);

    const Plan plan(Experiment(s, random).desc());
    int chosen = 0;
    for (const Candidate& candidate : plan.explain(tokens)) {
      EXPECT_NE(candidate.reason, "") << candidate.name;
      if (!candidate.chosen) continue;
      ++chosen;
      EXPECT_TRUE(candidate.eligible);
      EXPECT_EQ(candidate.name, plan.implementation(tokens));
    }
    EXPECT_EQ(chosen, 1);
  }
}

// One step of an mlp by another implementation than the other: what passes between them has neither one's own order.
TEST_P(Choice, IsRightWhereOneStepIsForced) {
  if (GetParam().op != GATEFOLD_OP_MLP || device_memory().device() != GATEFOLD_DEVICE_CPU) return;
  for (const char* forced : {"gate_up=reference", "gemm=reference", "gate_up=loops:portable"}) {
    SCOPED_TRACE(forced);
    setenv("GATEFOLD_IMPL", forced, 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
    Random random = test_random();
    expect_right(spec(131, 40, 2083), random);
    unsetenv("GATEFOLD_IMPL");  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace
}  // namespace gatefold::test
