#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "support/names.hpp"
#include "swap_ffn/experiment.hpp"
#include "swap_ffn/independent.hpp"

// Whole steps beside the reference, whose state is never rounded. Rounding sends some cores along another path, and
// over several MLPs no useful bound of it exists. But where both compute from the same bits, everything must be as the
// check of single events has it; and which bits are the same is known: ram at the start, and here s at the start too.
namespace gatefold::test {
namespace {

class SwapFfnWholeStep : public testing::TestWithParam<gatefold_dtype> {
 protected:
  SwapFfnDesc desc(std::int64_t events) const {
    SwapFfnDesc desc = small_desc(GetParam());
    desc.cores = 64;
    desc.events = events;
    desc.k_ffn = 1;
    return desc;
  }
};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnWholeStep, testing::ValuesIn(all_dtypes),
                         [](const auto& test) { return name(test.param); });

void draw_integers(SwapFfnExperiment& e, const std::string& name, std::int64_t count, Random& random) {
  std::uniform_int_distribution<int> integer(-1, 1);
  for (std::int64_t i = 0; i < count; ++i) e.set(name, i, integer(random));
}

// The start is of small integers, below the 256 that bf16 holds, and ffn_norm of 1, 2 and 4 (halves would round fp16's
// subnormals), so that neither the start nor folding rounds: the step, its check and the reference have the same s and
// the same weights.
void make_exact(SwapFfnExperiment& e, std::int64_t batch, Random& random) {
  const std::int64_t D = e.desc().hidden_size;
  const std::int64_t E = e.desc().core_embed_size;
  draw_integers(e, "core_embed", e.desc().cores * E, random);
  for (const char* name : {"scale_w", "shift_w"}) draw_integers(e, name, D * E, random);
  for (const char* name : {"scale_b", "shift_b"}) draw_integers(e, name, D, random);
  for (std::int64_t d = 0; d < D; ++d) e.set("ffn_norm", d, std::ldexp(1.0, static_cast<int>(random() % 3)));
  for (std::int64_t i = 0; i < batch * D; ++i) e.set_element(e.x, i, static_cast<double>(random() % 7) - 3.0);
  e.reload();
}

bool is_permutation(std::uint8_t map) {
  unsigned seen = 0;
  for (int i = 0; i < 4; ++i) seen |= 1U << (map >> (2 * i) & 3U);
  return seen == 0xf;
}

// Of a step and of the reference from the same start.
class Pair {
 public:
  Pair(const SwapFfnDesc& desc, Random& random) : mine(desc, batch, random), theirs(mine, batch) {
    make_exact(mine, batch, random);
    mine.step();
    theirs.step(mine);
    report = mine.expect_right();
  }

  bool decided_alike(std::int64_t event, std::int64_t row) const {
    const std::int64_t i = event * mine.rows() + row;
    const bool swap = mine.decision(i) >= 4;
    return swap == (theirs.decisions[i] >= 4) && (!swap || mine.decision(i) == theirs.decisions[i]);
  }
  bool same_path(std::int64_t row) const {
    bool same = true;
    for (std::int64_t e = 0; e < mine.desc().events; ++e) same = same && decided_alike(e, row);
    return same;
  }

  static constexpr std::int64_t batch = 2;
  SwapFfnExperiment mine;
  LibraryReference theirs;
  gatefold_swap_ffn_report report{};
};

// Does the core swap in the last event, for a bank that nothing was swapped into before?
bool takes_a_bank_of_the_start(const Pair& pair, std::int64_t row) {
  std::array<unsigned, 4> lanes{0, 1, 2, 3};
  std::array<bool, 4> written{};
  bool fresh = false;
  for (std::int64_t e = 0; e < pair.mine.desc().events; ++e) {
    const unsigned decision = pair.mine.decision(e * pair.mine.rows() + row);
    fresh = decision >= 4 && !written[lanes[decision & 3U]];
    if (decision < 4) continue;
    written[lanes[decision & 3U]] = true;
    std::swap(lanes[0], lanes[decision & 3U]);
  }
  return fresh;
}

// One event from the same bits: the reference decides and moves as the step does, but for what the check counts as
// undecided, and the step's error against it is the one that the check found, whose bounds are those of one event.
TEST_P(SwapFfnWholeStep, OneEventFromTheSameBits) {
  Random random = test_random();
  const Pair pair(desc(1), random);
  const SwapFfnExperiment& mine = pair.mine;
  const std::int64_t D = mine.desc().hidden_size;
  std::int64_t otherwise = 0;
  double error = 0.0;
  double square = 0.0;
  for (std::int64_t row = 0; row < mine.rows(); ++row) {
    const unsigned differing = mine.decision(row) ^ pair.theirs.decisions[row];
    otherwise += static_cast<std::int64_t>((differing & 4U) != 0) + static_cast<std::int64_t>((differing & 3U) != 0);
    if (!pair.decided_alike(0, row)) continue;
    EXPECT_EQ(mine.map(row), pair.theirs.map[row]) << "row " << row;
    for (std::int64_t i = row * 4 * D; i < (row + 1) * 4 * D; ++i) {
      ASSERT_EQ(mine.element(mine.ram, i), pair.theirs.ram[i]) << "row " << row;
    }
    for (std::int64_t i = row * D; i < (row + 1) * D; ++i) {
      const double truth = pair.theirs.cores[i];
      const double difference = mine.element(mine.states, mine.rows() * D + i) - truth;
      error += difference * difference;
      square += truth * truth;
    }
  }
  EXPECT_EQ(otherwise, pair.report.undecided_against);
  // Sums of double precision in two orders: 2^-50 of each truth for some hundred terms, beside errors of at least
  // 2^-24.
  if (otherwise == 0) {
    EXPECT_NEAR(std::sqrt(error / square), pair.report.relative_l2, 0x1p-20 * pair.report.relative_l2);
  }
}

// Events that follow one another. Every map is a permutation, and the reference's where all decisions were the same;
// there a bank that the reference holds as it was at the start has the same bits, and a core that took such a bank in
// the last event is no further from the reference than the check found any value from its truth.
TEST_P(SwapFfnWholeStep, SeveralEvents) {
  Random random = test_random();
  const Pair pair(desc(3), random);
  const SwapFfnExperiment& mine = pair.mine;
  const std::int64_t D = mine.desc().hidden_size;
  const std::int64_t last = mine.desc().events - 1;
  std::int64_t same = 0;
  std::int64_t held = 0;
  for (std::int64_t row = 0; row < mine.rows(); ++row) {
    EXPECT_TRUE(is_permutation(mine.map(row))) << "row " << row;
    EXPECT_TRUE(is_permutation(pair.theirs.map[row])) << "row " << row;
    if (!pair.same_path(row)) continue;
    ++same;
    EXPECT_EQ(mine.map(row), pair.theirs.map[row]) << "row " << row;
    for (std::int64_t bank = row * 4; bank < row * 4 + 4; ++bank) {
      const auto at_start = [&](std::int64_t d) { return mine.element(mine.ram_before, bank * D + d); };
      bool untouched = true;
      for (std::int64_t d = 0; d < D; ++d) untouched = untouched && pair.theirs.ram[bank * D + d] == at_start(d);
      for (std::int64_t d = 0; untouched && d < D; ++d) ASSERT_EQ(mine.element(mine.ram, bank * D + d), at_start(d));
    }
    if (!takes_a_bank_of_the_start(pair, row)) continue;
    ++held;
    for (std::int64_t d = 0; d < D; ++d) {
      const double value = mine.element(mine.states, ((last + 1) * mine.rows() + row) * D + d);
      ASSERT_LE(std::abs(value - pair.theirs.cores[row * D + d]), pair.report.max_abs * (1.0 + 0x1p-20))
          << "row " << row;
    }
  }
  std::printf("%ld of %ld cores took the reference's path, %ld of them are held to its values\n",
              static_cast<long>(same), static_cast<long>(mine.rows()), static_cast<long>(held));
  EXPECT_GT(held, 0);
}

}  // namespace
}  // namespace gatefold::test
