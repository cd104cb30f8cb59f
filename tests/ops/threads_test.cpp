#include <omp.h>

#include "ops/targets.hpp"

// On the CPU: a plan made while OpenMP has one number of threads, and run while it has another.
namespace gatefold::test {
namespace {

constexpr int thread_counts[] = {1, 2, 7};

class Threads : public TargetTest {
 protected:
  ~Threads() override { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};
INSTANTIATE_TEST_SUITE_P(All, Threads, testing::ValuesIn(all_targets()), target_name);

TEST_P(Threads, DontChangeResults) {
  Random random = test_random();
  for (const std::int64_t tokens : {3, 65}) {
    for (const std::int64_t hidden_size : {259, 1024}) {
      Spec s = spec(tokens, hidden_size, 192);
      if (tokens > 3) s.biases = every_bias;
      Experiment experiment(s, random);
      std::vector<std::byte> first;
      for (const int when_planned : thread_counts) {
        for (const int when_run : thread_counts) {
          omp_set_num_threads(when_planned);
          const Plan plan(experiment.desc(GetParam().implementation));
          omp_set_num_threads(when_run);
          experiment.run(plan);
          if (first.empty()) first = experiment.out_bytes();
          ASSERT_EQ(experiment.out_bytes(), first)
              << "tokens " << tokens << ", hidden_size " << hidden_size << ", planned for " << when_planned
              << " threads, run by " << when_run;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
