#include <thread>

#include "ops/targets.hpp"

namespace gatefold::test {
namespace {

class Determinism : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, Determinism, testing::ValuesIn(all_targets()), target_name);

// A plan, or none where the implementation doesn't take the description.
std::optional<Plan> plan_for(const Experiment& experiment, const std::string& implementation) {
  try {
    return Plan(experiment.desc(implementation));
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED) << error.what();
    return std::nullopt;
  }
}

TEST_P(Determinism, RepeatsAreBitIdentical) {
  Random random = test_random();
  for (const std::int64_t tokens : {1, 65, 130}) {
    Experiment experiment(spec(tokens, 259, 192), random);
    const std::optional<Plan> plan = plan_for(experiment, GetParam().implementation);
    if (!plan) GTEST_SKIP() << "not taken by " << GetParam().implementation;
    experiment.run(*plan);
    const std::vector<std::byte> first = experiment.out_bytes();
    for (int repeat = 0; repeat < 4; ++repeat) {
      experiment.run(*plan);
      ASSERT_EQ(experiment.out_bytes(), first) << "tokens " << tokens << ", repeat " << repeat;
    }
    experiment.run(*plan_for(experiment, GetParam().implementation));
    EXPECT_EQ(experiment.out_bytes(), first) << "tokens " << tokens << ", another plan";
  }
}

TEST_P(Determinism, ThreadsShareAPlan) {
  constexpr int thread_count = 4;
  Random random = test_random();
  Spec s = spec(37, 96, 160);
  if (device_memory().device() == GATEFOLD_DEVICE_CPU) s.biases = every_bias;  // not every CUDA kernel takes them
  Experiment experiment(s, random);
  const std::optional<Plan> plan = plan_for(experiment, GetParam().implementation);
  if (!plan) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  experiment.run(*plan);  // uploads the inputs as well

  std::vector<Tensor> outs;
  std::vector<Tensor> workspaces;
  for (int i = 0; i < thread_count; ++i) {
    outs.push_back(experiment.make_out());
    workspaces.push_back(experiment.make_workspace(*plan));
    outs.back().upload();
    workspaces.back().upload();
  }
  std::vector<std::thread> threads;
  std::vector<std::string> errors(thread_count);
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (int repeat = 0; repeat < 5; ++repeat) plan->run(experiment.device_args(outs[i], workspaces[i]));
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (int i = 0; i < thread_count; ++i) {
    EXPECT_EQ(errors[i], "");
    outs[i].download();
    outs[i].expect_surroundings_unchanged("out");
    for (std::int64_t t = 0; t < outs[i].shape().rows; ++t) {
      for (std::int64_t c = 0; c < outs[i].shape().columns; ++c) {
        ASSERT_EQ(outs[i].get(t, c), experiment.out(t, c)) << "thread " << i << " row " << t << " column " << c;
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
