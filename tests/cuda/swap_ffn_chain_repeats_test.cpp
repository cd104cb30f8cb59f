#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "graph.hpp"
#include "support/names.hpp"
#include "swap_ffn_lane.hpp"

// Chains again and again, from the same state: whoever comes first, the bits are the same. And several at once, whose
// blocks all wait for others of their own launch: none may hold a multiprocessor that another waits for.
namespace gatefold::test {
namespace {

struct Case {
  SwapFfnDesc desc;
  std::int64_t batch;
};

// The sizes that SWAP_FFN's kernels are made for, with all events; rows and sums that end within tiles, and more MLPs;
// a single tile of each product in a row block, where waiting counts most; and more tiles of one product than of the
// other.
std::vector<Case> cases(gatefold_dtype dtype) {
  SwapFfnDesc real = real_desc(dtype);
  real.events = 8;
  std::vector<Case> result{{real, 1}};
  struct Sizes {
    std::int64_t hidden_size, intermediate_size, cores, batch;
  };
  for (const Sizes& sizes : {Sizes{264, 1000, 100, 3}, {64, 72, 132, 1}, {2056, 264, 128, 1}, {72, 2056, 512, 1}}) {
    SwapFfnDesc desc = small_desc(dtype);
    desc.hidden_size = sizes.hidden_size;
    desc.intermediate_size = sizes.intermediate_size;
    desc.cores = sizes.cores;
    desc.events = 3;
    desc.k_ffn = 3;
    result.push_back({desc, sizes.batch});
  }
  return result;
}

std::string describe(const Case& c) {
  return std::to_string(c.batch * c.desc.cores) + " rows, D " + std::to_string(c.desc.hidden_size) + ", F " +
         std::to_string(c.desc.intermediate_size);
}

// So few steps are enqueued at a time that the host is not made to wait for a place: wait_for_end watches the device.
constexpr int at_a_time = 4;

int repeats() { return thorough() ? 10000 : 200; }

class SwapFfnChainRepeats : public testing::TestWithParam<gatefold_dtype> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  }
};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnChainRepeats, testing::Values(GATEFOLD_DTYPE_BF16, GATEFOLD_DTYPE_FP16),
                         [](const auto& test) { return name(test.param); });

TEST_P(SwapFfnChainRepeats, AreBitIdentical) {
  Random random = test_random();
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(describe(c));
    SwapFfnExperiment experiment(c.desc, c.batch, random);
    SwapFfnRepeats steps(experiment, c.desc, c.batch);
    for (int repeat = 0; repeat < repeats(); ++repeat) {
      steps.enqueue();
      if (repeat % at_a_time == 0) wait_for_end(steps.stream());
    }
    EXPECT_EQ(steps.differing_words(), 0U) << "of " << repeats() << " steps";
  }
}

TEST_P(SwapFfnChainRepeats, AGraphsReplaysAreBitIdentical) {
  Random random = test_random();
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(describe(c));
    SwapFfnExperiment experiment(c.desc, c.batch, random);
    SwapFfnRepeats steps(experiment, c.desc, c.batch);
    const Graph graph(steps.stream().get(), [&] { steps.enqueue(); });
    for (int repeat = 0; repeat < repeats(); ++repeat) {
      graph.launch(steps.stream().get());
      if (repeat % at_a_time == 0) wait_for_end(steps.stream());
    }
    EXPECT_EQ(steps.differing_words(), 0U) << "of " << repeats() << " replays";
  }
}

// Every size on two streams of its own, all in turn. Two chains of the first one's 128 blocks are more than any device
// holds at a time: if some blocks of each were there, they would wait for the others for ever.
TEST_P(SwapFfnChainRepeats, OnManyStreamsAtOnceAllEnd) {
  Random random = test_random();
  std::vector<std::unique_ptr<SwapFfnExperiment>> experiments;
  std::vector<std::unique_ptr<SwapFfnRepeats>> lanes;
  for (const Case& c : cases(GetParam())) {
    experiments.push_back(std::make_unique<SwapFfnExperiment>(c.desc, c.batch, random));
    for (int lane = 0; lane < 2; ++lane) {
      lanes.push_back(std::make_unique<SwapFfnRepeats>(*experiments.back(), c.desc, c.batch));
    }
  }
  for (int repeat = 0; repeat < repeats(); ++repeat) {
    for (const auto& lane : lanes) lane->enqueue();
    if (repeat % at_a_time != 0) continue;
    for (const auto& lane : lanes) wait_for_end(lane->stream());
  }
  for (const auto& lane : lanes) wait_for_end(lane->stream());
  for (const auto& lane : lanes) EXPECT_EQ(lane->differing_words(), 0U) << "of " << repeats() << " steps";
}

// The same by graphs, whose kernels are launched without the host.
TEST_P(SwapFfnChainRepeats, GraphsOnTwoStreamsAtOnceEnd) {
  Random random = test_random();
  const Case c = cases(GetParam()).front();
  SwapFfnExperiment experiment(c.desc, c.batch, random);
  SwapFfnRepeats one(experiment, c.desc, c.batch);
  SwapFfnRepeats other(experiment, c.desc, c.batch);
  const Graph graph_of_one(one.stream().get(), [&] { one.enqueue(); });
  const Graph graph_of_other(other.stream().get(), [&] { other.enqueue(); });
  for (int repeat = 0; repeat < repeats(); ++repeat) {
    graph_of_one.launch(one.stream().get());
    graph_of_other.launch(other.stream().get());
    if (repeat % at_a_time != 0) continue;
    wait_for_end(one.stream());
    wait_for_end(other.stream());
  }
  wait_for_end(one.stream());
  wait_for_end(other.stream());
  EXPECT_EQ(one.differing_words(), 0U) << "of " << repeats() << " replays";
  EXPECT_EQ(other.differing_words(), 0U) << "of " << repeats() << " replays";
}

}  // namespace
}  // namespace gatefold::test
