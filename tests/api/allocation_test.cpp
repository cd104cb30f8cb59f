#include <atomic>
#include <cstdlib>
#include <new>

#include "api/valid_call.hpp"

// What the library takes from operator new, which this program replaces: none in a run, be it a plan's first, and where
// one fails in a plan a status with a message, and nothing lost.
namespace {

std::atomic<std::int64_t> made{0};
std::atomic<std::int64_t> alive{0};
std::atomic<std::int64_t> left{-1};  // until one fails; below 0 none does

}  // namespace

// Not inlined: GCC would see free() called on what comes from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (left.load() >= 0 && left.fetch_sub(1) == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ++made;
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

// Not even a plan's first run, and though none would be granted.
TEST_P(Allocations, ARunMakesNone) {
  for_each_call([](ValidCall& call) {
    gatefold_plan* plan = nullptr;
    ASSERT_EQ(gatefold_plan_create(&call.desc, &plan), GATEFOLD_SUCCESS);
    for (int run = 0; run < 3; ++run) {
      SCOPED_TRACE(run);
      const std::int64_t before = made;
      left = 0;
      const gatefold_status status = gatefold_run(plan, &call.args);
      const bool asked = left.exchange(-1) < 0;
      const std::int64_t after = made;
      EXPECT_EQ(status, GATEFOLD_SUCCESS);
      EXPECT_FALSE(asked);
      EXPECT_EQ(after, before);
    }
    gatefold_plan_destroy(plan);
  });
}

TEST_P(Allocations, EachThatFailsInAPlanIsAStatus) {
  for_each_call([](ValidCall& call) {
    expect_runs(call);  // what is made once for the process is there
    for (std::int64_t n = 0; n < 10000; ++n) {
      gatefold_plan* plan = nullptr;
      const std::int64_t before = alive;
      left = n;
      const gatefold_status status = gatefold_plan_create(&call.desc, &plan);
      const bool failed = left.exchange(-1) < 0;
      if (!failed) {
        EXPECT_GT(n, 0);
        EXPECT_EQ(status, GATEFOLD_SUCCESS);
        gatefold_plan_destroy(plan);
        return;
      }
      ASSERT_EQ(status, GATEFOLD_ERROR_OUT_OF_MEMORY) << "allocation " << n;
      ASSERT_EQ(plan, static_cast<gatefold_plan*>(nullptr));
      ASSERT_STREQ(gatefold_last_error(), "host memory: an allocation failed");
      ASSERT_EQ(alive, before) << "allocation " << n;
    }
    FAIL() << "no end of allocations";
  });
}

}  // namespace
}  // namespace gatefold::test
