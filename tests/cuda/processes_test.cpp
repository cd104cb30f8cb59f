#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "cuda_support.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"
#include "trap.hpp"

// What a process may do to its devices, each in one of its own.
namespace gatefold::test {
namespace {

class OwnProcess : public TargetTest {
 protected:
  // The code with which a process that has done nothing else leaves.
  template <class Work>
  void expect_exit_code_0(Work work) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";  // starts this program anew
    EXPECT_EXIT(std::exit(work()), testing::ExitedWithCode(0), "");
  }
  std::vector<std::byte> result(const Plan& plan) const {
    Random random(1);
    Experiment experiment(spec(9, 2048, 2056), random);
    experiment.run(plan);
    return experiment.out_bytes();
  }
  // With the device's error, and a reason.
  static bool refused(const Plan& plan, const Experiment& experiment, Lane& lane) {
    try {
      lane.run(experiment, plan);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return error.status() == GATEFOLD_ERROR_DEVICE && std::string(error.what()).find("device 0") != std::string::npos;
    }
    return false;
  }
  std::optional<Plan> taken_plan() const {
    Random random(1);
    try {
      return Plan(Experiment(spec(9, 2048, 2056), random).desc(GetParam().implementation));
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED) << error.what();
      return {};
    }
  }
  // work(next_is_refused), in such a process that has run the plan.
  template <class Work>
  void expect_exit_code_0_after_a_run(Work work) {
    expect_exit_code_0([&] {
      const std::optional<Plan> plan = taken_plan();
      Random random(1);
      Experiment experiment(spec(9, 2048, 2056), random);
      experiment.run(*plan);
      Lane lane(experiment, *plan);
      return work([&] { return refused(*plan, experiment, lane); });
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, OwnProcess, testing::ValuesIn(targets({GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP})),
                         target_name);

// What is known of a device, or was asked of it once, may go with its context.
TEST_P(OwnProcess, ResetsTheDevice) {
  if (!taken_plan()) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  expect_exit_code_0([&] {
    const std::optional<Plan> plan = taken_plan();
    const std::vector<std::byte> before = result(*plan);
    require(cudaDeviceReset(), "cudaDeviceReset");
    return result(*plan) == before ? 0 : 1;
  });
}

// CUDA doesn't work in a child of a process that has used it: an error, no crash.
TEST_P(OwnProcess, ForksAfterARun) {
  if (!taken_plan()) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  expect_exit_code_0_after_a_run([&](const auto& next_is_refused) {
    const pid_t child = fork();
    if (child == 0) _exit(next_is_refused() ? 0 : 1);
    int state = 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 100 + WTERMSIG(state);
  });
}

// A kernel's fault stays with the context for good, and whose it was is no longer known: an error, whatever is called.
TEST_P(OwnProcess, RunsAfterAFault) {
  if (!taken_plan()) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  expect_exit_code_0_after_a_run([&](const auto& next_is_refused) {
    run_into_a_trap();
    return next_is_refused() ? 0 : 1;
  });
}

}  // namespace
}  // namespace gatefold::test
