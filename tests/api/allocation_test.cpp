#include <cstdlib>

#include "api/valid_call.hpp"
#include "support/allocations.hpp"

// What the library allocates, and OpenMP's runtime in its name: nothing in a run, be it a plan's first, and where an
// allocation fails in a plan a status with a message, and nothing lost.
namespace gatefold::test {
namespace {

class Allocations : public testing::TestWithParam<gatefold_op> {
 protected:
  // For the products inside an mlp: the first of their list.
  Allocations() { setenv("GATEFOLD_IMPL", gatefold_implementation_name(GATEFOLD_OP_GEMM, GATEFOLD_DEVICE_CPU, 0), 1); }
  ~Allocations() override { unsetenv("GATEFOLD_IMPL"); }

  // function(call) for every implementation of the op.
  template <class Function>
  static void for_each_call(Function function) {
    for (int i = 0;; ++i) {
      const char* name = gatefold_implementation_name(GetParam(), GATEFOLD_DEVICE_CPU, i);
      if (name == nullptr) return;
      SCOPED_TRACE(name);
      ValidCall call(GetParam());
      call.desc.implementation = name;
      function(call);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, Allocations,
                         testing::Values(GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED,
                                         GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP));

// Not even a plan's first run.
TEST_P(Allocations, ARunMakesNone) {
  for_each_call([](ValidCall& call) {
    expect_runs(call);  // Clang's OpenMP runtime allocates when it is first asked anything
    gatefold_plan* plan = nullptr;
    ASSERT_EQ(gatefold_plan_create(&call.desc, &plan), GATEFOLD_SUCCESS);
    for (int run = 0; run < 3; ++run) {
      SCOPED_TRACE(run);
      expect_allocates_nothing([&] { return gatefold_run(plan, &call.args); });
    }
    gatefold_plan_destroy(plan);
  });
}

TEST_P(Allocations, EachThatFailsInAPlanIsAStatus) {
  for_each_call([](ValidCall& call) {
    expect_runs(call);  // what a run makes once for the process is there
    expect_each_failed_allocation_is_a_status([&] {
      gatefold_plan* plan = nullptr;
      const gatefold_status status = gatefold_plan_create(&call.desc, &plan);
      EXPECT_EQ(plan != nullptr, status == GATEFOLD_SUCCESS);
      gatefold_plan_destroy(plan);
      return status;
    });
  });
}

}  // namespace
}  // namespace gatefold::test
