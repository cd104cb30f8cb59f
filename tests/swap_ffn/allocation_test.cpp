#include <gtest/gtest.h>

#include "support/allocations.hpp"
#include "swap_ffn/experiment.hpp"

// What the step allocates: nothing. And where an allocation of a plan or of prepare fails, a status.
namespace gatefold::test {
namespace {

TEST(SwapFfnAllocations, AStepMakesNone) {
  Random random = test_random();
  SwapFfnExperiment experiment(small_desc(GATEFOLD_DTYPE_BF16), 2, random);
  const gatefold_swap_ffn_desc desc = experiment.desc().c_desc();
  gatefold_swap_ffn_plan* plan = nullptr;
  ASSERT_EQ(gatefold_swap_ffn_plan_create(&desc, &plan), GATEFOLD_SUCCESS);
  const gatefold_swap_ffn_args args = experiment.args(true).c_args();
  for (int run = 0; run < 3; ++run) {
    SCOPED_TRACE(run);
    expect_allocates_nothing([&] { return gatefold_swap_ffn_step(plan, &args); });
  }
  gatefold_swap_ffn_plan_destroy(plan);
}

TEST(SwapFfnAllocations, EachThatFailsIsAStatus) {
  Random random = test_random();
  SwapFfnExperiment experiment(small_desc(GATEFOLD_DTYPE_FP32), 1, random);
  const gatefold_swap_ffn_desc desc = experiment.desc().c_desc();
  expect_each_failed_allocation_is_a_status([&] {
    gatefold_swap_ffn_plan* plan = nullptr;
    const gatefold_status status = gatefold_swap_ffn_plan_create(&desc, &plan);
    EXPECT_EQ(plan != nullptr, status == GATEFOLD_SUCCESS);
    gatefold_swap_ffn_plan_destroy(plan);
    return status;
  });
  gatefold_swap_ffn_plan* plan = nullptr;
  ASSERT_EQ(gatefold_swap_ffn_plan_create(&desc, &plan), GATEFOLD_SUCCESS);
  const gatefold_swap_ffn_weights weights = experiment.weights();
  expect_each_failed_allocation_is_a_status([&] {
    return gatefold_swap_ffn_prepare(plan, &weights, experiment.prepared.data(), experiment.prepared.size(), nullptr);
  });
  gatefold_swap_ffn_plan_destroy(plan);
}

}  // namespace
}  // namespace gatefold::test
