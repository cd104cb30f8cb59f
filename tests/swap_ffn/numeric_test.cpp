#include <gtest/gtest.h>

#include "support/names.hpp"
#include "swap_ffn/experiment.hpp"
#include "swap_ffn/independent.hpp"

// Values and decisions, one event at a time from equal state; and the reference itself.
namespace gatefold::test {
namespace {

class SwapFfnNumeric : public testing::TestWithParam<gatefold_dtype> {
 protected:
  // A few steps, each with a new x, from the state that the last one left. Returns how many decisions were undecided.
  std::int64_t expect_steps_right(const SwapFfnDesc& desc, std::int64_t batch, int steps = 2) {
    Random random = test_random();
    SwapFfnExperiment experiment(desc, batch, random);
    std::int64_t undecided = 0;
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(step);
      experiment.step();
      undecided += experiment.expect_right().undecided;
      experiment.redraw_x(random);
    }
    return undecided;
  }
};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnNumeric, testing::ValuesIn(all_dtypes),
                         [](const auto& test) { return name(test.param); });

TEST_P(SwapFfnNumeric, SizesThatDivideNothing) {
  SwapFfnDesc desc = small_desc(GetParam());
  expect_steps_right(desc, 2, 4);
  desc.cores = 37;
  desc.hidden_size = 264;
  desc.intermediate_size = 1000;
  expect_steps_right(desc, 3);
}

TEST_P(SwapFfnNumeric, OneOfEverything) {
  SwapFfnDesc desc = small_desc(GetParam());
  desc.cores = 1;
  expect_steps_right(desc, 1);
  desc = small_desc(GetParam());
  desc.events = 1;
  expect_steps_right(desc, 2);
  desc = small_desc(GetParam());
  desc.k_ffn = 1;
  expect_steps_right(desc, 2);
  desc = small_desc(GetParam());
  desc.hidden_size = desc.intermediate_size = desc.core_embed_size = 1;
  desc.router_width = desc.collapse_heads = desc.collapse_width = 1;
  expect_steps_right(desc, 2);
}

TEST_P(SwapFfnNumeric, BatchesUpTo64) {
  SwapFfnDesc desc = small_desc(GetParam());
  desc.events = 2;
  for (const std::int64_t batch : {1, 2, 16, 63, 64}) {
    SCOPED_TRACE(batch);
    expect_steps_right(desc, batch, 1);  // 64 x 13 rows are two blocks, and a sequence lies in both
  }
}

// Nearly every decision must be clear of rounding, or the check would hold nothing.
TEST_P(SwapFfnNumeric, DecisionsAreClear) {
  SwapFfnDesc desc = small_desc(GetParam());
  desc.cores = 300;
  const std::int64_t undecided = expect_steps_right(desc, 2, 2);
  EXPECT_LE(undecided, 2 * 2 * desc.events * desc.cores * 2 / 100);
}

// A result depends on its own sequence alone, up to where its rows fall in a block.
TEST_P(SwapFfnNumeric, SequencesDoNotMix) {
  const SwapFfnDesc desc = small_desc(GetParam());
  Random random = test_random();
  SwapFfnExperiment experiment(desc, 3, random);
  const std::vector<std::byte> ram = experiment.ram.bytes();
  const std::vector<std::byte> map = experiment.stream_map.bytes();
  experiment.step();
  const std::vector<std::byte> delta = experiment.delta.bytes();
  const std::size_t vector = delta.size() / 3;
  experiment.ram.assign(ram);
  experiment.stream_map.assign(map);
  for (std::int64_t d = 0; d < desc.hidden_size; ++d) experiment.set_element(experiment.x, desc.hidden_size + d, 3.0);
  experiment.step();
  const std::vector<std::byte> changed = experiment.delta.bytes();
  const auto same = [&](std::size_t b) {
    return std::equal(delta.begin() + b * vector, delta.begin() + (b + 1) * vector, changed.begin() + b * vector);
  };
  EXPECT_TRUE(same(0));
  EXPECT_FALSE(same(1));
  EXPECT_TRUE(same(2));
}

// The reference against the definition written out here, in double precision: the two add up in other orders.
TEST_P(SwapFfnNumeric, TheReferenceIsTheDefinition) {
  const SwapFfnDesc desc = small_desc(GetParam());
  Random random = test_random();
  SwapFfnExperiment experiment(desc, 2, random);
  IndependentStep own(experiment, 2);
  LibraryReference library(experiment, 2);
  for (int step = 0; step < 3; ++step) {
    own.step(experiment);
    library.step(experiment);
    EXPECT_EQ(own.decisions, library.decisions);
    EXPECT_EQ(own.map, library.map);
    expect_near(own.ram, library.ram);
    expect_near(own.s, library.cores);
    expect_near(own.delta, library.delta);
    experiment.redraw_x(random);
  }
}

}  // namespace
}  // namespace gatefold::test
