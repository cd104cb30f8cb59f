#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "support/names.hpp"
#include "swap_ffn_lane.hpp"

// A chain: the MLPs of an event in one launch, where each product is one round of tiles at most. A step that keeps its
// states has a launch for each MLP, of the same kernel, whose states the check holds against the truth. So what a chain
// does is right if both leave the same bits.
namespace gatefold::test {
namespace {

struct Size {
  gatefold_dtype dtype;
  std::int64_t hidden_size, intermediate_size;
};
void PrintTo(const Size& size, std::ostream* out) {
  *out << name(size.dtype) << ", D " << size.hidden_size << ", F " << size.intermediate_size;
}

// The sizes that the tiles are made for; tails in every direction; more of one product's tiles than of the other's, so
// that clusters have no tile of one; one tile of either, whose sums only one block of two has; and squares of more
// tiles of down than are added up at a time, 16.
std::vector<Size> sizes() {
  std::vector<Size> result;
  for (const gatefold_dtype dtype : {GATEFOLD_DTYPE_BF16, GATEFOLD_DTYPE_FP16}) {
    for (const auto& [hidden_size, intermediate_size] :
         {std::pair{1024, 4096}, {1000, 4104}, {520, 1048}, {264, 1000}, {2056, 264}, {72, 2056}, {64, 72}, {8, 8}}) {
      result.push_back({dtype, hidden_size, intermediate_size});
    }
  }
  return result;
}

// Of events and MLPs.
struct Order {
  std::int64_t events, k_ffn;
};
constexpr Order orders[] = {{1, 1}, {1, 2}, {1, 3}, {3, 1}, {3, 2}, {3, 3}};

// Around slabs of 64 and row blocks of 128, and pairs of these, which share weights; 2048 are the most.
constexpr std::int64_t edges[] = {1, 63, 64, 65, 127, 128, 129, 300, 384, 511, 512, 1025, 1919, 2047, 2048};

class SwapFfnChain : public testing::TestWithParam<Size> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  }

  // A row is a sequence of one core: its own delta shows it.
  static SwapFfnDesc desc(const Order& order) {
    SwapFfnDesc desc = small_desc(GetParam().dtype);
    desc.hidden_size = GetParam().hidden_size;
    desc.intermediate_size = GetParam().intermediate_size;
    desc.cores = 1;
    desc.events = order.events;
    desc.k_ffn = order.k_ffn;
    return desc;
  }

  // The rows of these sizes that are chained on this device.
  static std::vector<std::int64_t> chained_rows() {
    const SwapFfn plan(desc(orders[0]));
    std::vector<std::int64_t> result;
    for (const std::int64_t rows : edges) {
      if (is_chained(plan, rows)) result.push_back(rows);
    }
    EXPECT_FALSE(result.empty());
    return result;
  }

  // All of them, or a fresh sample.
  static std::vector<std::int64_t> some(std::vector<std::int64_t> rows, std::size_t count, Random& random) {
    if (thorough()) return rows;
    std::ranges::shuffle(rows, random);
    rows.resize(std::min(rows.size(), count));
    return rows;
  }

  // always: every row swaps in every event, so that ram shows the states of all events but the last; or about half of
  // them do.
  static void plan_for(SwapFfnExperiment& experiment, const SwapFfnDesc& desc, bool always) {
    experiment.set("router_swap_b", 0, always ? 8.0 : 0.125);
    plan_anew(experiment, desc);
  }
};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnChain, testing::ValuesIn(sizes()), [](const auto& test) {
  return name(test.param.dtype) + "_" + std::to_string(test.param.hidden_size) + "_" +
         std::to_string(test.param.intermediate_size);
});

// Three steps in a row: counters begin anew in each, whatever the one before left.
TEST_P(SwapFfnChain, KeepingStatesChangesNoBit) {
  constexpr int steps = 3;
  Random random = test_random();
  const std::vector<std::int64_t> chained = chained_rows();
  SwapFfnExperiment experiment(desc(orders[0]), std::ranges::max(chained), random);
  int cases = 0;
  for (const Order& order : orders) {
    const SwapFfnDesc d = desc(order);
    plan_for(experiment, d, random() % 2 == 0);
    for (const std::int64_t rows : some(chained, 4, random)) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << d.events << " events of " << d.k_ffn << " MLPs");
      SwapFfnLane together(experiment, d, rows, false, steps);
      SwapFfnLane apart(experiment, d, rows, true, steps);
      together.begin();
      for (int step = 0; step < steps; ++step) together.enqueue();
      const SwapFfnLane::Bits bits = together.bits();
      apart.begin();
      for (int step = 0; step < steps; ++step) apart.step();
      expect_same_bits(bits, apart.bits());
      if (HasFailure()) return;
      ++cases;
    }
  }
  std::printf("%d cases, rows up to %ld\n", cases, static_cast<long>(std::ranges::max(chained)));
}

// Each event from the state that the step itself had, against the truth in double precision.
TEST_P(SwapFfnChain, IsRight) {
  Random random = test_random();
  const std::vector<std::int64_t> chained = chained_rows();
  SwapFfnExperiment experiment(desc(orders[0]), std::ranges::max(chained), random);
  for (const Order& order : orders) {
    const SwapFfnDesc d = desc(order);
    plan_for(experiment, d, random() % 2 == 0);
    for (const std::int64_t rows : some(chained, 1, random)) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << d.events << " events of " << d.k_ffn << " MLPs");
      SwapFfnLane lane(experiment, d, rows, true);
      lane.begin();
      lane.step();
      lane.expect_right(true);
      lane.bits();  // looks at the canaries
    }
  }
}

// Rows of several cores: of one sequence, and of as many as divide them.
TEST_P(SwapFfnChain, CoresAreRows) {
  Random random = test_random();
  SwapFfnDesc d = desc({2, 2});
  for (const auto& [cores, batch] : {std::pair{300, 1}, {100, 3}, {43, 6}}) {
    d.cores = cores;
    SwapFfnExperiment experiment(d, batch, random);
    if (!is_chained(experiment.plan, batch)) continue;
    SCOPED_TRACE(testing::Message() << batch << " sequences of " << cores << " cores");
    const std::vector<std::byte> ram = experiment.ram.bytes();
    const std::vector<std::byte> map = experiment.stream_map.bytes();
    experiment.step(true);
    experiment.expect_right();
    const std::vector<std::vector<std::byte>> kept{experiment.delta.bytes(), experiment.ram.bytes(),
                                                   experiment.stream_map.bytes()};
    experiment.ram.assign(ram);
    experiment.stream_map.assign(map);
    experiment.step(false);
    EXPECT_TRUE(experiment.delta.bytes() == kept[0]);
    EXPECT_TRUE(experiment.ram.bytes() == kept[1]);
    EXPECT_TRUE(experiment.stream_map.bytes() == kept[2]);
  }
}

// 64 clusters of two, where the device has so many multiprocessors.
TEST(SwapFfnChainSizes, TheDefaultOnesAreChained) {
  if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  int multiprocessors = 0;
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  for (const gatefold_dtype dtype : all_dtypes) {
    const SwapFfn plan(real_desc(dtype));
    EXPECT_EQ(is_chained(plan, 1), dtype != GATEFOLD_DTYPE_FP32 && multiprocessors >= 132) << name(dtype);
    EXPECT_FALSE(is_chained(plan, 2)) << name(dtype);
  }
}

// An event is two kernels; beside them there are four.
TEST(SwapFfnChainSizes, AnEventIsTwoLaunches) {
  if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  Random random = test_random();
  SwapFfnDesc desc = small_desc(GATEFOLD_DTYPE_BF16);
  desc.intermediate_size = 104;
  desc.events = 5;
  desc.k_ffn = 3;
  SwapFfnExperiment experiment(desc, 2, random);
  ASSERT_TRUE(is_chained(experiment.plan, 2));
  std::int64_t launches = 0;
  for (const gatefold_swap_ffn_pass_info& pass : experiment.plan.passes(2)) launches += pass.launches;
  EXPECT_EQ(launches, 14);
  SwapFfnLane lane(experiment, desc, 2, false);
  lane.begin();  // nothing may be allocated during a capture
  EXPECT_EQ(Graph(lane.stream.get(), [&] { lane.enqueue(); }).nodes(), 14U);
}

}  // namespace
}  // namespace gatefold::test
