#include <cuda.h>

#include <optional>
#include <tuple>

#include "cuda_support.hpp"
#include "driver.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"
#include "swap_ffn_lane.hpp"

// Contexts that are not a device's primary one: another of the same device, and a part of its multiprocessors.
namespace gatefold::test {
namespace {

CUcontext current_context() {
  CUcontext context = nullptr;
  require_driver(driver_function<decltype(&::cuCtxGetCurrent)>("cuCtxGetCurrent")(&context), "cuCtxGetCurrent");
  return context;
}

// Current until the end of the scope.
class PushedContext {
 public:
  explicit PushedContext(CUcontext context) {
    require_driver(driver_function<decltype(&::cuCtxPushCurrent)>("cuCtxPushCurrent")(context), "cuCtxPushCurrent");
  }
  PushedContext(const PushedContext&) = delete;
  PushedContext& operator=(const PushedContext&) = delete;
  ~PushedContext() {
    CUcontext popped = nullptr;
    static_cast<void>(driver_function<decltype(&::cuCtxPopCurrent)>("cuCtxPopCurrent")(&popped));
  }
};

// A context of device 0 beside the primary one; current from its creation until it is destroyed.
class OwnContext {
 public:
  OwnContext() {
    const auto create = driver_function<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate", 3020);
    require_driver(create(&context_, 0, 0), "cuCtxCreate");
  }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  ~OwnContext() { static_cast<void>(driver_function<decltype(&::cuCtxDestroy)>("cuCtxDestroy")(context_)); }
  CUcontext get() const { return context_; }

 private:
  CUcontext context_ = nullptr;
};

// The memory of whatever context is current.
using CurrentMemory = MemoryBy<cudaMalloc, cudaFree>;

class Contexts : public TargetTest {
 protected:
  static constexpr std::int64_t token_counts[] = {9, 300};

  // Its result in the primary context; nothing if the implementation doesn't take it.
  std::vector<std::byte> primary_result(const Spec& s, Random random) const {
    Experiment experiment(s, random);
    if (!experiment.run(GetParam().implementation)) return {};
    return experiment.out_bytes();
  }
};
INSTANTIATE_TEST_SUITE_P(All, Contexts, testing::ValuesIn(all_targets()), target_name);

// A kernel's leave for shared memory, or its code, might be there in the primary context alone.
TEST_P(Contexts, OfTheSameDeviceGiveTheSameBits) {
  Random random = test_random();
  bool taken = false;
  for (const std::int64_t tokens : token_counts) {
    const Spec s = spec(tokens, 2048, 2056);
    const std::vector<std::byte> expected = primary_result(s, random);
    if (expected.empty()) continue;
    taken = true;
    const OwnContext own;
    CurrentMemory memory;
    Random same = random;
    Experiment experiment(s, same, memory);
    ASSERT_TRUE(experiment.run(GetParam().implementation)) << describe(s);
    EXPECT_EQ(experiment.out_bytes(), expected) << describe(s);
    EXPECT_EQ(current_context(), own.get());
  }
  if (!taken) GTEST_SKIP() << "not taken by " << GetParam().implementation;
}

#if CUDA_VERSION >= 12050

// A quarter of device 0's multiprocessors, or some more, as a context.
class GreenContext {
 public:
  GreenContext() {
    CUdevResource all{};
    const auto resource = driver_function<decltype(&::cuDeviceGetDevResource)>("cuDeviceGetDevResource", 12040);
    require_driver(resource(0, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
    CUdevResource part{};
    CUdevResource rest{};
    unsigned parts = 1;
    const auto split = driver_function<decltype(&::cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount", 12040);
    require_driver(split(&part, &parts, &all, &rest, 0, all.sm.smCount / 4), "cuDevSmResourceSplitByCount");
    CUdevResourceDesc description{};
    const auto describe = driver_function<decltype(&::cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc", 12040);
    require_driver(describe(&description, &part, 1), "cuDevResourceGenerateDesc");
    const auto create = driver_function<decltype(&::cuGreenCtxCreate)>("cuGreenCtxCreate", 12040);
    require_driver(create(&green_, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    const auto stream = driver_function<decltype(&::cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate", 12050);
    require_driver(stream(&stream_, green_, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
    const auto context = driver_function<decltype(&::cuCtxFromGreenCtx)>("cuCtxFromGreenCtx", 12040);
    require_driver(context(&context_, green_), "cuCtxFromGreenCtx");
  }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;
  ~GreenContext() {
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(driver_function<decltype(&::cuGreenCtxDestroy)>("cuGreenCtxDestroy", 12040)(green_));
  }
  CUcontext context() const { return context_; }
  cudaStream_t stream() const { return stream_; }

 private:
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

// On its stream, whether or not it is current. Plans count all multiprocessors, and blocks follow one another.
TEST_P(Contexts, OfSomeMultiprocessorsGiveTheSameBits) {
  Random random = test_random();
  const GreenContext green;
  bool taken = false;
  for (const std::int64_t tokens : token_counts) {
    const Spec s = spec(tokens, 2048, 2056);
    Experiment experiment(s, random);
    if (!experiment.run(GetParam().implementation)) continue;
    taken = true;
    const Plan plan(experiment.desc(GetParam().implementation));
    for (const bool current : {false, true}) {
      Lane lane(experiment, plan);
      Args args = experiment.device_args(lane.out, lane.workspace);
      args.stream = green.stream();
      {
        std::optional<PushedContext> pushed;
        if (current) pushed.emplace(green.context());
        plan.run(args);
        require(cudaStreamSynchronize(green.stream()), "cudaStreamSynchronize");
      }
      EXPECT_EQ(lane.result(experiment), experiment.out_bytes()) << describe(s) << (current ? ", current" : "");
    }
  }
  if (!taken) GTEST_SKIP() << "not taken by " << GetParam().implementation;
}

// The MLPs of an event are one launch where all its blocks are on the device at a time, which they are not here.
TEST(SwapFfnContexts, OfSomeMultiprocessorsTakeNoChain) {
  if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  Random random = test_random();
  const GreenContext green;
  SwapFfnExperiment experiment(real_desc(GATEFOLD_DTYPE_BF16), 1, random);
  ASSERT_TRUE(is_chained(experiment.plan, 1)) << "elsewhere";
  const std::vector<std::byte> ram = experiment.ram.bytes();
  const std::vector<std::byte> map = experiment.stream_map.bytes();
  const auto run = [&](bool keep, cudaStream_t stream) {
    experiment.ram.assign(ram);
    experiment.stream_map.assign(map);
    SwapFfnArgs args = experiment.args(keep);
    args.stream = stream;
    experiment.run(args);
    return std::tuple{experiment.delta.bytes(), experiment.ram.bytes(), experiment.stream_map.bytes()};
  };
  experiment.step();
  for (const bool current : {false, true}) {
    std::optional<PushedContext> pushed;
    if (current) pushed.emplace(green.context());
    const auto with_states = run(true, green.stream());
    experiment.states.download();
    experiment.decisions.download();
    experiment.expect_right();
    EXPECT_TRUE(run(false, green.stream()) == with_states) << "other bits without states";
  }
}

#endif

// A context that isn't primary, which cudaSetDevice would not bring back.
TEST(OwnContexts, AreCurrentAgainAfterARunOnAnotherDevice) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  Random random = test_random();
  const Spec spec{.op = GATEFOLD_OP_ACT_AND_MUL, .dtype = GATEFOLD_DTYPE_BF16, .tokens = 9, .intermediate_size = 128};
  const Experiment there(spec, random, memory_of_device(1));
  const Plan plan(there.desc());
  Tensor out = there.make_out();
  Tensor workspace = there.make_workspace(plan);
  {
    const OwnContext own;
    plan.run(there.device_args(out, workspace));
    EXPECT_EQ(current_context(), own.get());
  }
  const CurrentDevice one(1);
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace
}  // namespace gatefold::test
