#include "cpu/activation.hpp"

#include "core/problem.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/independent.hpp"
#include "support/names.hpp"

namespace gatefold {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using Internal = decltype(Problem::activation);  // the public header has an Activation too

Internal internal(const test::Activation& a) { return {static_cast<ActivationKind>(a.kind), a.limit, a.alpha, a.beta}; }

TEST(Activations, MatchASecondDefinition) {
  for (const test::Activation& activation : test::all_activations) {
    for (double g = -40.0; g <= 40.0; g += 0.0625) {
      const auto expected = static_cast<double>(test::activate(activation, g));
      ASSERT_NEAR(cpu::activate(internal(activation), g), expected, 1e-12 * std::abs(expected) + 1e-300)
          << test::name(activation.kind) << " of " << g;
    }
  }
}

// The bound of gatefold_check leans on these: no step of an activation is steeper, and they are no looser than 1 %.
TEST(Activations, LargestSlopeIsTheLargestSlope) {
  for (const test::Activation& activation : test::all_activations) {
    constexpr double step = 1e-3;
    double steepest = 0.0;
    for (double g = -10.0; g < 10.0; g += step) {
      const double rise = cpu::activate(internal(activation), g + step) - cpu::activate(internal(activation), g);
      steepest = std::max(steepest, std::abs(rise / step));
    }
    const double claimed = cpu::largest_slope(internal(activation));
    EXPECT_LE(steepest, claimed * (1.0 + 1e-9)) << test::name(activation.kind);
    if (activation.kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) continue;  // its limit may cut the steepest part off
    EXPECT_GE(steepest, claimed * 0.99) << test::name(activation.kind);
  }
}

TEST(Activations, ClampsKeepNaN) {
  EXPECT_TRUE(std::isnan(cpu::clamp_above(nan, 1.0)));
  EXPECT_TRUE(std::isnan(cpu::clamp_both(nan, 1.0)));
  EXPECT_EQ(cpu::clamp_above(infinity, 2.0), 2.0);
  EXPECT_EQ(cpu::clamp_above(-infinity, 2.0), -infinity);
  EXPECT_EQ(cpu::clamp_both(infinity, 2.0), 2.0);
  EXPECT_EQ(cpu::clamp_both(-infinity, 2.0), -2.0);
}

TEST(Activations, LinearFactorIsClampedAndShifted) {
  const Internal clamped{ActivationKind::swiglu_clamped, 2.0F, 1.0F, 0.5F};
  EXPECT_EQ(cpu::linear_factor(clamped, 9.0), 2.5);
  EXPECT_EQ(cpu::linear_factor(clamped, -9.0), -1.5);
  EXPECT_EQ(cpu::linear_factor(clamped, 1.0), 1.5);
  EXPECT_EQ(cpu::linear_factor({ActivationKind::silu, 0.0F, 0.0F, 0.0F}, 9.0), 9.0);
}

}  // namespace
}  // namespace gatefold
