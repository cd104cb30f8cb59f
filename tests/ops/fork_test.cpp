#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "ops/targets.hpp"

// On the CPU: a child has its parent's memory, but not the threads of its teams.
namespace gatefold::test {
namespace {

class Fork : public TargetTest {
 protected:
  Fork() { omp_set_num_threads(3); }
  ~Fork() override { omp_set_num_threads(before_); }

  // What a child makes of work(): 0 if that returned true, 1 if not, 100 and a signal where one ended it. A child that
  // waits for ever is ended by its own alarm.
  template <class Work>
  static int child(Work work) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(30);
      _exit(work() ? 0 : 1);
    }
    int state = 0;
    EXPECT_EQ(waitpid(pid, &state, 0), pid);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 100 + WTERMSIG(state);
  }

 private:
  int before_ = omp_get_max_threads();
};
INSTANTIATE_TEST_SUITE_P(All, Fork, testing::ValuesIn(all_targets()), target_name);

// Each after the other: a child's own child, too, and the parent with its team afterwards.
TEST_P(Fork, DoesntEndWork) {
  Random random = test_random();
  Experiment experiment(spec(65, 259, 1024), random);
  const Plan plan(experiment.desc(GetParam().implementation));
  experiment.run(plan);
  const std::vector<std::byte> expected = experiment.out_bytes();
  const auto runs = [&] {
    experiment.run(plan);
    return experiment.out_bytes() == expected;
  };
  EXPECT_EQ(child(runs), 0);
  EXPECT_EQ(child([&] { return runs() && child(runs) == 0; }), 0);
  EXPECT_TRUE(runs());
#ifndef __SANITIZE_THREAD__  // which ends a child that starts threads
  EXPECT_EQ(child([&] {
              bool right = false;
              std::thread([&] { right = runs(); }).join();  // with a team of its own
              return right && runs();
            }),
            0);
#endif
}

}  // namespace
}  // namespace gatefold::test
