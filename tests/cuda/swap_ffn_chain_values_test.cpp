#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "swap_ffn_lane.hpp"

// What the states of a chain may be: very large and very small, zero, infinite, NaN. 1/rms of an MLP after the first
// comes from squares that the one before has left, in double precision, since those of fp32 neither overflow nor
// vanish there (docs/numerics.md has the special values).
namespace gatefold::test {
namespace {

constexpr std::int64_t rows = 300;  // two row blocks and 44 rows
constexpr double infinity = std::numeric_limits<double>::infinity();

class SwapFfnChainValues : public testing::TestWithParam<gatefold_dtype> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_chains(); !why.empty()) GTEST_SKIP() << why;
  }

  // Sequences of one core, whose deltas show each row; two events of three MLPs.
  static SwapFfnDesc desc(double eps = 1e-6) {
    SwapFfnDesc desc = small_desc(GetParam());
    desc.hidden_size = 520;
    desc.intermediate_size = 1048;
    desc.cores = 1;
    desc.events = 2;
    desc.k_ffn = 3;
    desc.eps = eps;
    return desc;
  }

  // Of the step in chains, after it has been held against one that keeps its states, and that against the truth.
  static SwapFfnLane::Bits bits_of_right_step(SwapFfnExperiment& experiment, bool whole) {
    EXPECT_TRUE(is_chained(experiment.plan, rows));
    SwapFfnLane together(experiment, experiment.desc(), rows, false);
    SwapFfnLane apart(experiment, experiment.desc(), rows, true);
    together.begin();
    together.enqueue();
    const SwapFfnLane::Bits bits = together.bits();
    apart.begin();
    apart.step();
    apart.expect_right(whole);
    expect_same_bits(bits, apart.bits());
    return bits;
  }

  static void scale(SwapFfnExperiment& experiment, const char* weight, std::int64_t count, double by) {
    for (std::int64_t i = 0; i < count; ++i) {
      experiment.set(weight, i, round_to(GetParam(), experiment.get(weight, i) * by));
    }
  }
  static void scale(SwapFfnExperiment& experiment, Guarded& tensor, std::int64_t count, double by) {
    for (std::int64_t i = 0; i < count; ++i) {
      experiment.set_element(tensor, i, round_to(GetParam(), experiment.element(tensor, i) * by));
    }
  }

  static double delta(const SwapFfnLane::Bits& bits, std::int64_t row, std::int64_t column) {
    const auto element = static_cast<std::size_t>(row * desc().hidden_size + column) * element_size(GetParam());
    return decode(GetParam(), bits.delta.data() + element);
  }

  static void fill(SwapFfnExperiment& experiment, const char* weight, std::int64_t count, double value) {
    for (std::int64_t i = 0; i < count; ++i) experiment.set(weight, i, value);
  }
};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnChainValues, testing::Values(GATEFOLD_DTYPE_BF16, GATEFOLD_DTYPE_FP16),
                         [](const auto& test) { return name(test.param); });

// x, the shifts, ram and down's weights are scaled, and with them every state. Sums of some hundred terms stay within
// fp32, as they must; the squares don't: 1e50, or 1e-40. eps is small beside the squares, or far above them, when the
// states of the next MLPs vanish. fp16 rounds states of 1e-4 to few bits, so that their relative L2 says nothing.
TEST_P(SwapFfnChainValues, StatesOfEverySize) {
  struct Case {
    double size, eps;
    bool whole;
  };
  const std::vector<Case> cases =
      GetParam() == GATEFOLD_DTYPE_BF16
          ? std::vector<Case>{{1e18, 1e-6, true}, {1e25, 1e-6, true}, {1e-20, 1e-46, true}, {1e-20, 1e-6, false}}
          : std::vector<Case>{{2000.0, 1e-6, true}, {1e-4, 1e-14, false}, {1e-4, 1e-6, false}};
  Random random = test_random();
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << "states of " << c.size << ", eps " << c.eps);
    const SwapFfnDesc d = desc(c.eps);
    SwapFfnExperiment experiment(d, rows, random);
    scale(experiment, experiment.x, rows * d.hidden_size, c.size);
    scale(experiment, experiment.ram, rows * 4 * d.hidden_size, c.size);
    scale(experiment, "shift_w", d.hidden_size * d.core_embed_size, c.size);
    scale(experiment, "shift_b", d.hidden_size, c.size);
    scale(experiment, "down_w", d.hidden_size * d.intermediate_size, c.size);
    experiment.reload();
    bits_of_right_step(experiment, c.whole);
  }
}

// Each of down's tiles of 64 columns in a size of its own: their squares have other exponents.
TEST_P(SwapFfnChainValues, TilesOfEverySize) {
  Random random = test_random();
  const SwapFfnDesc d = desc();
  const int most = GetParam() == GATEFOLD_DTYPE_BF16 ? 30 : 4;
  for (int draw = 0; draw < 3; ++draw) {
    SwapFfnExperiment experiment(d, rows, random);
    std::vector<int> exponents;
    for (std::int64_t column = 0; column < d.hidden_size; ++column) {
      if (column % 64 == 0) exponents.push_back(std::uniform_int_distribution<int>(-most, most)(random));
      for (std::int64_t f = 0; f < d.intermediate_size; ++f) {
        const std::int64_t at = column * d.intermediate_size + f;
        experiment.set("down_w", at, round_to(GetParam(), std::ldexp(experiment.get("down_w", at), exponents.back())));
      }
    }
    SCOPED_TRACE(testing::PrintToString(exponents));
    experiment.reload();
    bits_of_right_step(experiment, GetParam() == GATEFOLD_DTYPE_BF16);
  }
}

// Without a swap a row of zeros stays one, and its delta is zero; 1/rms is 1/sqrt(eps). The others are what they were.
TEST_P(SwapFfnChainValues, RowsOfZeros) {
  Random random = test_random();
  const SwapFfnDesc d = desc();
  SwapFfnExperiment experiment(d, rows, random);
  fill(experiment, "shift_w", d.hidden_size * d.core_embed_size, 0.0);
  fill(experiment, "shift_b", d.hidden_size, 0.0);
  experiment.set("router_swap_b", 0, -8.0);
  experiment.reload();
  const SwapFfnLane::Bits before = bits_of_right_step(experiment, true);
  const std::vector<std::byte> x = experiment.x.bytes();
  for (const std::int64_t row : {0, 63, 64, 127, 128, 256, 299}) {
    SCOPED_TRACE(testing::Message() << "row " << row);
    for (std::int64_t i = 0; i < d.hidden_size; ++i) {
      experiment.set_element(experiment.x, row * d.hidden_size + i, 0.0);
    }
    const SwapFfnLane::Bits bits = bits_of_right_step(experiment, true);
    expect_same_bits_but_for(row, rows, before, bits);
    for (std::int64_t i = 0; i < d.hidden_size; ++i) ASSERT_EQ(delta(bits, row, i), 0.0);
    experiment.x.assign(x);
  }
}

// In x, or in a bank that the first event takes in.
TEST_P(SwapFfnChainValues, ANanOrInfinityStaysInItsRow) {
  Random random = test_random();
  const SwapFfnDesc d = desc();
  SwapFfnExperiment experiment(d, rows, random);
  experiment.set("router_swap_b", 0, 8.0);
  experiment.reload();
  const SwapFfnLane::Bits before = bits_of_right_step(experiment, true);
  const std::vector<std::byte> x = experiment.x.bytes();
  const std::vector<std::byte> ram = experiment.ram.bytes();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity}) {
    for (const bool in_ram : {false, true}) {
      const auto row = std::uniform_int_distribution<std::int64_t>(0, rows - 1)(random);
      const auto column = std::uniform_int_distribution<std::int64_t>(0, d.hidden_size - 1)(random);
      SCOPED_TRACE(testing::Message() << bad << (in_ram ? " in ram, row " : " in x, row ") << row << ", column "
                                      << column);
      for (std::int64_t bank = 0; in_ram && bank < 4; ++bank) {
        experiment.set_element(experiment.ram, (row * 4 + bank) * d.hidden_size + column, bad);
      }
      if (!in_ram) experiment.set_element(experiment.x, row * d.hidden_size + column, bad);
      const SwapFfnLane::Bits bits = bits_of_right_step(experiment, true);
      expect_same_bits_but_for(row, rows, before, bits);
      for (std::int64_t i = 0; i < d.hidden_size; ++i) ASSERT_TRUE(std::isnan(delta(bits, row, i)));
      experiment.x.assign(x);
      experiment.ram.assign(ram);
    }
  }
}

// An infinity that an MLP makes itself, so that its square is among what the next one's 1/rms comes from, in the same
// launch. One row alone has something, 1, in the column that gate and up have large weights for: its h is 1/rms^2,
// which is near 1/2, times 2e37, or 3000 in fp16. Down adds up 1048 halves of it in its last column: far beyond the
// type's largest number, while the other columns' sums, of either sign, stay about as large as h. In the next MLP the
// row is NaN, as infinity times a 1/rms of 0.
TEST_P(SwapFfnChainValues, ARowThatOverflowsStaysAlone) {
  Random random = test_random();
  const SwapFfnDesc d = desc();
  const std::int64_t D = d.hidden_size;
  const std::int64_t F = d.intermediate_size;
  const std::int64_t large = 40;
  const double weight = round_to(GetParam(), std::sqrt(GetParam() == GATEFOLD_DTYPE_BF16 ? 2e37 : 3000.0));
  SwapFfnExperiment experiment(d, rows, random);
  for (std::int64_t e = 0; e < d.core_embed_size; ++e) {
    experiment.set("shift_w", large * d.core_embed_size + e, 0.0);
    experiment.set("scale_w", large * d.core_embed_size + e, 0.0);
  }
  experiment.set("shift_b", large, 0.0);
  experiment.set("scale_b", large, 0.0);
  experiment.set("ffn_norm", large, 1.0);
  experiment.set("router_swap_b", 0, -8.0);
  for (std::int64_t f = 0; f < F; ++f) {
    experiment.set("gate_w", f * D + large, weight);
    experiment.set("up_w", f * D + large, weight);
    experiment.set("down_w", large * F + f, 0.0);
    experiment.set("down_w", (D - 1) * F + f, 0.5);
  }
  for (std::int64_t row = 0; row < rows; ++row) experiment.set_element(experiment.x, row * D + large, 0.0);
  experiment.reload();
  const SwapFfnLane::Bits before = bits_of_right_step(experiment, true);
  for (const std::int64_t row : {0, 127, 128, 299}) {
    SCOPED_TRACE(testing::Message() << "row " << row);
    experiment.set_element(experiment.x, row * D + large, 1.0);
    // The row's h are nearly all alike, and so are their roundings: its relative L2 says nothing.
    const SwapFfnLane::Bits bits = bits_of_right_step(experiment, false);
    expect_same_bits_but_for(row, rows, before, bits);
    SwapFfnLane apart(experiment, d, rows, true);
    apart.begin();
    apart.step();
    EXPECT_EQ(apart.state(1, row, D - 1), infinity);
    for (std::int64_t i = 0; i < D; ++i) ASSERT_TRUE(std::isnan(apart.state(2, row, i)));
    for (std::int64_t i = 0; i < D; ++i) ASSERT_TRUE(std::isnan(delta(bits, row, i)));
    experiment.set_element(experiment.x, row * D + large, 0.0);
  }
}

}  // namespace
}  // namespace gatefold::test
