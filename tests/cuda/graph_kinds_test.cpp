#include <vector>

#include "cuda_support.hpp"
#include "graph.hpp"
#include "graph_loop.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"
#include "swap_ffn_lane.hpp"

// What engines do with a captured run: loop on the device, branch, exchange its pointers.
namespace gatefold::test {
namespace {

class GraphKinds : public TargetTest {
 protected:
  static constexpr std::int64_t token_counts[] = {1, 9, 300};

  // work(experiment, plan) for few tokens and many, of an experiment that has run; sizes of whole tiles and tails.
  template <class Work>
  void for_each_plan(Work work) const {
    Random random = test_random();
    bool taken = false;
    for (const std::int64_t tokens : token_counts) {
      Experiment experiment(spec(tokens, 520, 1032), random);
      if (!experiment.run(GetParam().implementation)) continue;
      taken = true;
      const Plan plan(experiment.desc(GetParam().implementation));
      SCOPED_TRACE(describe(experiment.spec()));
      work(experiment, plan);
    }
    if (!taken) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GraphKinds, testing::ValuesIn(all_targets()), target_name);

// Twice in each pass, so that a run follows another within the body and the last pass's.
TEST_P(GraphKinds, ALoopOnTheDevice) {
  for_each_plan([](const Experiment& experiment, const Plan& plan) {
    Lane one(experiment, plan);
    Lane other(experiment, plan);
    const auto enqueue = [&](Lane& lane) {
      Args args = experiment.device_args(lane.out, lane.workspace);
      args.stream = one.stream.get();
      plan.run(args);
    };
    const GraphLoop loop(one.stream, 3, [&] {
      enqueue(one);
      enqueue(other);
    });
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (Lane* lane : {&one, &other}) {
        lane->out.poison();
        lane->out.upload();
      }
      loop.launch(one.stream);
      one.stream.wait();
      EXPECT_EQ(one.result(experiment), experiment.out_bytes()) << "launch " << repeat;
      EXPECT_EQ(other.result(experiment), experiment.out_bytes()) << "launch " << repeat;
    }
  });
}

// Two runs that neither waits for, as of experts of one layer.
TEST_P(GraphKinds, TwoBranches) {
  for_each_plan([](const Experiment& experiment, const Plan& plan) {
    Lane one(experiment, plan);
    Lane other(experiment, plan);
    cudaEvent_t event = nullptr;
    require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    const auto follow = [&](const Lane& last, const Lane& next) {
      require(cudaEventRecord(event, last.stream.get()), "cudaEventRecord");
      require(cudaStreamWaitEvent(next.stream.get(), event, 0), "cudaStreamWaitEvent");
    };
    const Graph graph(one.stream.get(), [&] {
      follow(one, other);
      one.run(experiment, plan);
      other.run(experiment, plan);
      follow(other, one);
    });
    graph.launch(one.stream.get());
    EXPECT_EQ(one.result(experiment), experiment.out_bytes());
    EXPECT_EQ(other.result(experiment), experiment.out_bytes());
    require(cudaEventDestroy(event), "cudaEventDestroy");
  });
}

// Pointers lie in more than arguments: descriptors of tensors hold them too.
TEST_P(GraphKinds, UpdatedToOtherPointers) {
  for_each_plan([](const Experiment& experiment, const Plan& plan) {
    Lane one(experiment, plan);
    Lane other(experiment, plan);
    Graph graph(one.stream.get(), [&] { one.run(experiment, plan); });
    const Graph of_other(other.stream.get(), [&] { other.run(experiment, plan); });
    graph.update(of_other);
    graph.launch(one.stream.get());
    one.stream.wait();
    EXPECT_EQ(other.result(experiment), experiment.out_bytes());
    EXPECT_NE(one.result(experiment), experiment.out_bytes()) << "was written all the same";
  });
}

// The default stream by its two handles, and one that goes before others.
TEST_P(GraphKinds, StreamsOfEveryKind) {
  for_each_plan([](const Experiment& experiment, const Plan& plan) {
    int least = 0;
    int greatest = 0;
    require(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    cudaStream_t first = nullptr;
    require(cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
    for (const cudaStream_t stream : {cudaStreamLegacy, cudaStreamPerThread, first}) {
      Lane lane(experiment, plan);
      Args args = experiment.device_args(lane.out, lane.workspace);
      args.stream = stream;
      plan.run(args);
      require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      EXPECT_EQ(lane.result(experiment), experiment.out_bytes());
    }
    require(cudaStreamDestroy(first), "cudaStreamDestroy");
  });
}

// A loop of whole steps, chains among them, leaves what as many steps one by one do.
TEST(SwapFfnGraphs, ALoopOnTheDevice) {
  Random random = test_random();
  constexpr std::int64_t batch = 1;
  constexpr int steps = 3;
  const SwapFfnDesc desc = real_desc(GATEFOLD_DTYPE_BF16);
  SwapFfnExperiment experiment(desc, batch, random);
  SwapFfnLane expected(experiment, desc, batch, false);
  expected.begin();
  for (int step = 0; step < steps; ++step) expected.enqueue();
  SwapFfnLane lane(experiment, desc, batch, false);
  lane.begin();  // brings memory to the device, which a capture doesn't allow
  const GraphLoop loop(lane.stream, steps, [&] { lane.enqueue(); });
  lane.begin();
  loop.launch(lane.stream);
  expect_same_bits(lane.bits(), expected.bits());
}

}  // namespace
}  // namespace gatefold::test
