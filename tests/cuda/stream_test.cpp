#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "cuda_support.hpp"
#include "graph.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"

// Streams, captures and devices: what a run on a GPU promises beyond its result.
namespace gatefold::test {
namespace {

class Streams : public TargetTest {
 protected:
  // A plan for fresh data, and the experiment's own result from the default stream; null if it isn't taken.
  std::unique_ptr<Plan> start(const Spec& spec, Random& random) {
    experiment_.emplace(spec, random);
    if (!experiment_->run(GetParam().implementation)) return nullptr;
    return std::make_unique<Plan>(experiment_->desc(GetParam().implementation));
  }

  std::optional<Experiment> experiment_;
};
INSTANTIATE_TEST_SUITE_P(All, Streams, testing::ValuesIn(all_targets()), target_name);

// Ten runs on each of two streams, in turn: they share nothing but the plan and the inputs.
TEST_P(Streams, TwoAtOnce) {
  Random random = test_random();
  const std::unique_ptr<Plan> plan = start(spec(130, 264, 320), random);
  if (plan == nullptr) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  Lane one(*experiment_, *plan);
  Lane two(*experiment_, *plan);
  for (int repeat = 0; repeat < 10; ++repeat) {
    one.run(*experiment_, *plan);
    two.run(*experiment_, *plan);
  }
  const std::vector<std::byte> first = one.result(*experiment_);
  EXPECT_EQ(first, two.result(*experiment_));
  EXPECT_EQ(first, experiment_->out_bytes());
}

// The graph's result is that of a direct run; replayed on a poisoned output it is written anew.
TEST_P(Streams, IsCapturedIntoAGraph) {
  Random random = test_random();
  const std::unique_ptr<Plan> plan = start(spec(66, 264, 320), random);
  if (plan == nullptr) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  Lane lane(*experiment_, *plan);
  const Graph graph(lane.stream.get(), [&] { lane.run(*experiment_, *plan); });
  for (int repeat = 0; repeat < 2; ++repeat) {
    lane.out.poison();
    lane.out.upload();
    graph.launch(lane.stream.get());
    EXPECT_EQ(lane.result(*experiment_), experiment_->out_bytes()) << "replay " << repeat;
  }
}

// A kernel's first launch loads it and may ask the device about it: that too is allowed during a capture. The inputs
// come to the device with a run of simt's, so that is left out.
class FirstLaunch : public TargetTest {
 protected:
  // The exit code of a process in which nothing else has run.
  int capture_first() const {
    Random random = test_random();
    Experiment experiment(spec(66, 264, 320), random);
    experiment.run("simt");
    const Plan plan(experiment.desc(GetParam().implementation));
    Lane lane(experiment, plan);
    const Graph graph(lane.stream.get(), [&] { lane.run(experiment, plan); });
    graph.launch(lane.stream.get());
    const std::vector<std::byte> captured = lane.result(experiment);
    experiment.run(plan);
    return captured == experiment.out_bytes() ? 0 : 1;
  }
};

std::vector<Target> fast_targets() {
  std::vector<Target> result;
  for (const Target& target :
       targets({GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP})) {
    if (target.dtype == GATEFOLD_DTYPE_BF16 && target.implementation != "simt") result.push_back(target);
  }
  return result;
}
INSTANTIATE_TEST_SUITE_P(All, FirstLaunch, testing::ValuesIn(fast_targets()), target_name);

TEST_P(FirstLaunch, MayBeCaptured) {
  Random random = test_random();
  try {
    const Plan plan(Experiment(spec(66, 264, 320), random).desc(GetParam().implementation));
  } catch (const Error& error) {
    ASSERT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED) << error.what();
    GTEST_SKIP() << "not taken by " << GetParam().implementation;
  }
  testing::GTEST_FLAG(death_test_style) = "threadsafe";  // starts this program anew
  EXPECT_EXIT(std::exit(capture_first()), testing::ExitedWithCode(0), "");
}

class Devices : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, Devices, testing::ValuesIn(all_targets()), target_name);

TEST_P(Devices, RunsWhereThePointersAre) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  Random random = test_random();
  Experiment there(spec(9, 72, 128), random, memory_of_device(1));
  const CurrentDevice here(0);
  if (!there.run(GetParam().implementation)) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  int current = -1;
  require(cudaGetDevice(&current), "cudaGetDevice");
  EXPECT_EQ(current, 0);
  if (GetParam().op == GATEFOLD_OP_MLP) return;  // gatefold_check takes the ops that mlp is made of
  EXPECT_EQ(there.check(GATEFOLD_DATA_ZERO_MEAN).violations, 0);
}

class Pointers : public testing::Test {
 protected:
  static constexpr std::int64_t tokens = 4;
  static constexpr std::int64_t columns = 64;
  static constexpr std::size_t bytes = tokens * columns * sizeof(float);

  static Plan plan() {
    return Plan({.op = GATEFOLD_OP_ACT_AND_MUL,
                 .dtype = GATEFOLD_DTYPE_FP32,
                 .device = GATEFOLD_DEVICE_CUDA,
                 .layout = Layout::separate(),
                 .activation = Activation::identity(),
                 .intermediate_size = columns});
  }

  // The message of a run that must fail with GATEFOLD_ERROR_INVALID_ARGUMENT.
  static std::string failure(const void* gate, const void* up, void* out) {
    try {
      plan().run({.tokens = tokens, .gate = gate, .up = up, .out = out});
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GATEFOLD_ERROR_INVALID_ARGUMENT);
      return error.what();
    }
    ADD_FAILURE() << "the run succeeded";
    return {};
  }
};

// sm90 counts tokens in 31 bits. It refuses before it reads any of them, but they must be there, 32 GiB in and 32 out.
TEST(TooManyTokens, AreRefusedByAForcedKernel) {
  constexpr std::int64_t tokens = std::int64_t{1} << 31;
  void* memory = nullptr;
  if (cudaMalloc(&memory, 2 * 16 * tokens + 4096) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    GTEST_SKIP() << "no 64 GiB to be had";
  }
  const std::unique_ptr<void, cudaError_t (*)(void*)> owner(memory, cudaFree);
  auto* x = static_cast<std::byte*>(memory);
  try {
    const Plan plan({.op = GATEFOLD_OP_GEMM,
                     .dtype = GATEFOLD_DTYPE_BF16,
                     .device = GATEFOLD_DEVICE_CUDA,
                     .hidden_size = 8,
                     .intermediate_size = 8,
                     .implementation = "sm90"});
    plan.run({.tokens = tokens, .x = x, .up = x + 2 * 16 * tokens, .out = x + 16 * tokens});
    ADD_FAILURE() << "the run succeeded";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED);
    const std::string message = error.what();
    if (message.find("needs sm_90") == std::string::npos && message.find("is an sm_") == std::string::npos) {
      EXPECT_NE(message.find("2147483648"), std::string::npos) << message;
      EXPECT_NE(message.find("2147483647"), std::string::npos) << message;
    }
  }
}

TEST_F(Pointers, ToPlainHostMemoryAreNamed) {
  const Allocation gate(device_memory(), bytes);
  const Allocation out(device_memory(), bytes);
  const std::vector<float> up(tokens * columns, 1.0F);
  EXPECT_EQ(failure(gate.get(), up.data(), out.get()).substr(0, 3), "up:");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "left behind by the failed run";
}

TEST_F(Pointers, OnTwoDevicesAreNamedWithBoth) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  const Allocation gate(device_memory(), bytes);
  const Allocation up(memory_of_device(1), bytes);
  const Allocation out(device_memory(), bytes);
  EXPECT_EQ(failure(gate.get(), up.get(), out.get()), "up: on device 1, but out is on device 0");
}

TEST_F(Pointers, ToPageLockedHostMemoryWork) {
  void* locked = nullptr;
  require(cudaMallocHost(&locked, 2 * bytes), "cudaMallocHost");
  auto* host = static_cast<float*>(locked);
  for (std::int64_t i = 0; i < tokens * columns; ++i) {
    host[i] = static_cast<float>(i);
    host[tokens * columns + i] = 2.0F;
  }
  const Allocation out(device_memory(), bytes);
  plan().run({.tokens = tokens, .gate = host, .up = host + tokens * columns, .out = out.get()});
  std::vector<float> result(tokens * columns);
  device_memory().download(result.data(), out.get(), bytes);
  for (std::int64_t i = 0; i < tokens * columns; ++i) ASSERT_EQ(result[i], static_cast<float>(2 * i));
  require(cudaFreeHost(locked), "cudaFreeHost");
}

}  // namespace
}  // namespace gatefold::test
