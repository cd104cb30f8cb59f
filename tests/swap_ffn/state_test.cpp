#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/names.hpp"
#include "swap_ffn/experiment.hpp"

// Ram, the stream map and the decisions: where rows go, and what happens at the edges.
namespace gatefold::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_permutation(std::uint8_t map) {
  unsigned seen = 0;
  for (int lane = 0; lane < 4; ++lane) seen |= 1U << (map >> (2 * lane) & 3);
  return seen == 15;
}

// Router weights such that every decision is the same: the router's rows are 0, and the biases decide.
void decide_always(SwapFfnExperiment& e, bool swap, int choice) {
  const SwapFfnDesc& d = e.desc();
  for (std::int64_t i = 0; i < d.router_width * d.hidden_size; ++i) e.set("router_w", i, 0.0);
  e.set("router_swap_b", 0, swap ? 1.0 : -1.0);
  for (int b = 0; b < 4; ++b) e.set("bank_b", b, b == choice ? 1.0 : 0.0);
  e.reload();
}

TEST(SwapFfnState, TheMapStaysAPermutationForThousandsOfSteps) {
  Random random = test_random();
  SwapFfnDesc desc = small_desc(GATEFOLD_DTYPE_BF16);
  desc.hidden_size = 16;
  desc.intermediate_size = 24;
  SwapFfnExperiment experiment(desc, 2, random);
  std::int64_t moved = 0;
  for (int step = 0; step < 4000; ++step) {
    experiment.run(experiment.args(false));
    for (std::int64_t row = 0; row < experiment.rows(); ++row) {
      ASSERT_TRUE(is_permutation(experiment.map(row))) << "step " << step << ", row " << row;
      if (experiment.map(row) != GATEFOLD_SWAP_FFN_INITIAL_MAP) ++moved;
    }
    if (step % 100 == 0) experiment.redraw_x(random);
  }
  EXPECT_GT(moved, 0);
  experiment.step();
  experiment.expect_right();
}

TEST(SwapFfnState, WithoutSwapsNothingMoves) {
  Random random = test_random();
  for (const gatefold_dtype dtype : all_dtypes) {
    SwapFfnExperiment experiment(small_desc(dtype), 2, random);
    decide_always(experiment, false, 2);
    experiment.step();
    EXPECT_EQ(experiment.ram.bytes(), experiment.ram_before.bytes());
    EXPECT_EQ(experiment.stream_map.bytes(), experiment.stream_map_before.bytes());
    EXPECT_EQ(experiment.decision(0), 2);
    experiment.expect_right();
  }
}

// Choice c exchanges lanes 0 and c: an odd number of events leaves them exchanged, and lane 0's bank holds what the
// start state was.
TEST(SwapFfnState, EveryChoiceExchangesItsLanes) {
  Random random = test_random();
  constexpr std::uint8_t exchanged[] = {0b11100100, 0b11100001, 0b11000110, 0b00100111};
  for (int choice = 0; choice < 4; ++choice) {
    SCOPED_TRACE(choice);
    SwapFfnDesc desc = small_desc(GATEFOLD_DTYPE_BF16);
    desc.events = 1;
    SwapFfnExperiment experiment(desc, 1, random);
    decide_always(experiment, true, choice);
    experiment.step();
    const std::int64_t D = desc.hidden_size;
    for (std::int64_t row = 0; row < experiment.rows(); ++row) {
      EXPECT_EQ(experiment.map(row), exchanged[choice]);
      EXPECT_EQ(experiment.decision(row), 4 + choice);
      for (std::int64_t d = 0; d < D; ++d) {
        ASSERT_EQ(experiment.element(experiment.ram, (row * 4 + choice) * D + d),
                  experiment.element(experiment.states, row * D + d));
      }
    }
    experiment.expect_right();
  }
}

TEST(SwapFfnState, TheFirstOfEqualBanksIsChosen) {
  Random random = test_random();
  for (const gatefold_dtype dtype : all_dtypes) {
    SwapFfnExperiment experiment(small_desc(dtype), 2, random);
    for (std::int64_t r = 0; r < experiment.desc().router_width; ++r) {
      for (int b = 1; b < 4; ++b) experiment.set("bank_w", r * 4 + b, experiment.get("bank_w", r * 4));
    }
    const auto all_choose = [&](int choice) {
      for (std::int64_t i = 0; i < experiment.desc().events * experiment.rows(); ++i) {
        ASSERT_EQ(experiment.decision(i) & 3, choice);
      }
    };
    for (int b = 0; b < 4; ++b) experiment.set("bank_b", b, 0.25);
    experiment.reload();
    experiment.step();
    all_choose(0);
    EXPECT_GE(experiment.expect_right().undecided, experiment.desc().events * experiment.rows());
    experiment.set("bank_b", 0, 0.0);
    experiment.set("bank_b", 1, 0.0);
    experiment.reload();
    experiment.step();
    all_choose(2);
  }
}

// sigmoid(0) is 1/2, and not more.
TEST(SwapFfnState, AtTheThresholdThereIsNoSwap) {
  Random random = test_random();
  SwapFfnExperiment experiment(small_desc(GATEFOLD_DTYPE_FP32), 1, random);
  decide_always(experiment, true, 1);
  experiment.set("router_swap_b", 0, 0.0);
  experiment.reload();
  experiment.step();
  EXPECT_EQ(experiment.stream_map.bytes(), experiment.stream_map_before.bytes());
  experiment.set("router_swap_b", 0, 0x1p-100);
  experiment.reload();
  experiment.step();
  EXPECT_NE(experiment.stream_map.bytes(), experiment.stream_map_before.bytes());
}

// A row with a NaN or an infinity keeps it to itself: its bank does not move, its sequence's delta is NaN, and every
// other row and sequence is what it was.
TEST(SwapFfnState, ANanOrInfinityStaysInItsSequence) {
  Random random = test_random();
  for (const gatefold_dtype dtype : all_dtypes) {
    for (const double bad : {nan, infinity, -infinity}) {
      SwapFfnExperiment experiment(small_desc(dtype), 3, random);
      const std::vector<std::byte> ram = experiment.ram.bytes();
      experiment.step();
      const std::vector<std::byte> delta = experiment.delta.bytes();
      experiment.ram.assign(ram);
      std::fill_n(experiment.stream_map.data(), experiment.rows(), std::byte{GATEFOLD_SWAP_FFN_INITIAL_MAP});
      const std::int64_t D = experiment.desc().hidden_size;
      experiment.set_element(experiment.x, D + 5, bad);
      experiment.step();
      experiment.expect_right();
      const std::vector<std::byte> spoiled = experiment.delta.bytes();
      const auto vector = static_cast<std::ptrdiff_t>(delta.size() / 3);
      EXPECT_TRUE(std::equal(delta.begin(), delta.begin() + vector, spoiled.begin()));
      EXPECT_TRUE(std::equal(delta.begin() + 2 * vector, delta.end(), spoiled.begin() + 2 * vector));
      for (std::int64_t d = 0; d < D; ++d) EXPECT_TRUE(std::isnan(experiment.element(experiment.delta, D + d)));
      for (std::int64_t i = 0; i < experiment.desc().cores; ++i) {
        EXPECT_LT(experiment.decision(experiment.desc().cores + i), 4) << "a row of NaN swapped";
      }
    }
  }
}

// The passes' times cover the passes, and keeping states or times changes no result.
TEST(SwapFfnState, WhatIsKeptChangesNothing) {
  Random random = test_random();
  SwapFfnExperiment experiment(small_desc(GATEFOLD_DTYPE_BF16), 2, random);
  const std::vector<std::byte> ram = experiment.ram.bytes();
  const std::vector<std::byte> map = experiment.stream_map.bytes();
  experiment.step(true);
  const std::vector<std::byte> delta = experiment.delta.bytes();
  const std::vector<std::byte> ram_after = experiment.ram.bytes();
  for (int run = 0; run < 3; ++run) {
    experiment.ram.assign(ram);
    experiment.stream_map.assign(map);
    SwapFfnArgs args = experiment.args(false);
    std::vector<double> seconds(experiment.plan.passes(2).size() + 1, -1.0);
    args.pass_seconds = seconds.data();
    experiment.run(args);
    EXPECT_EQ(experiment.delta.bytes(), delta);
    EXPECT_EQ(experiment.ram.bytes(), ram_after);
    for (std::size_t i = 0; i + 1 < seconds.size(); ++i) EXPECT_GE(seconds[i], 0.0);
    EXPECT_EQ(seconds.back(), -1.0);
  }
}

}  // namespace
}  // namespace gatefold::test
