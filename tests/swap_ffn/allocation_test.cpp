#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "swap_ffn/experiment.hpp"

// What the step takes from operator new, which this program replaces: nothing. And where an allocation of a plan, of
// prepare or of a check fails, a status.
namespace {
std::atomic<std::int64_t> alive{0};
std::atomic<std::int64_t> left{-1};  // until one fails; below 0 none does
}  // namespace

// Not inlined: GCC would see free() called on what comes from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (left.load() >= 0 && left.fetch_sub(1) == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ++alive;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  --alive;
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

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
    left = 0;
    const gatefold_status status = gatefold_swap_ffn_step(plan, &args);
    const bool asked = left.exchange(-1) < 0;
    EXPECT_EQ(status, GATEFOLD_SUCCESS);
    EXPECT_FALSE(asked);
  }
  gatefold_swap_ffn_plan_destroy(plan);
}

// call() makes its allocations fail one after the other until it needs no more.
template <class Call>
void expect_each_failure_is_a_status(Call call) {
  call();  // what is made once for the process is there
  for (std::int64_t n = 0; n < 10000; ++n) {
    const std::int64_t before = alive;
    left = n;
    const gatefold_status status = call();
    const bool failed = left.exchange(-1) < 0;
    ASSERT_EQ(alive, before) << "allocation " << n;
    if (!failed) {
      EXPECT_GT(n, 0);
      EXPECT_EQ(status, GATEFOLD_SUCCESS);
      return;
    }
    ASSERT_EQ(status, GATEFOLD_ERROR_OUT_OF_MEMORY) << "allocation " << n;
    ASSERT_STREQ(gatefold_last_error(), "host memory: an allocation failed");
  }
  FAIL() << "no end of allocations";
}

TEST(SwapFfnAllocations, EachThatFailsIsAStatus) {
  Random random = test_random();
  SwapFfnExperiment experiment(small_desc(GATEFOLD_DTYPE_FP32), 1, random);
  const gatefold_swap_ffn_desc desc = experiment.desc().c_desc();
  expect_each_failure_is_a_status([&] {
    gatefold_swap_ffn_plan* plan = nullptr;
    const gatefold_status status = gatefold_swap_ffn_plan_create(&desc, &plan);
    gatefold_swap_ffn_plan_destroy(plan);
    return status;
  });
  gatefold_swap_ffn_plan* plan = nullptr;
  ASSERT_EQ(gatefold_swap_ffn_plan_create(&desc, &plan), GATEFOLD_SUCCESS);
  const gatefold_swap_ffn_weights weights = experiment.weights();
  expect_each_failure_is_a_status([&] {
    return gatefold_swap_ffn_prepare(plan, &weights, experiment.prepared.data(), experiment.prepared.size(), nullptr);
  });
  gatefold_swap_ffn_plan_destroy(plan);
}

}  // namespace
}  // namespace gatefold::test
