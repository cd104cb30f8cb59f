#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/targets.hpp"

// Bias vectors, by every implementation that takes them: each product's own, in every layout, before the activation.
namespace gatefold::test {
namespace {

std::vector<Target> products() {
  return targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP});
}

class Bias : public TargetTest {
 protected:
  Spec biased(std::int64_t tokens, std::int64_t hidden_size, std::int64_t intermediate_size) const {
    Spec s = spec(tokens, hidden_size, intermediate_size);
    s.biases = every_bias;
    return s;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Bias, testing::ValuesIn(products()), target_name);

TEST_P(Bias, EveryLayoutAndActivation) {
  Random random = test_random();
  for (const Activation& activation : activations_of(GetParam().op)) {
    for (const Layout& layout : layouts_of(GetParam().op, 96)) {
      Spec s = biased(9, 67, 96);
      s.layout = layout;
      s.activation = activation;
      s.values = random() % 2 == 0 ? Values::zero_mean : Values::all_positive;
      expect_right(s, random);
    }
  }
}

// One without the others: what has no bias must not get another's.
TEST_P(Bias, EachAlone) {
  Random random = test_random();
  for (const Biases& biases : {Biases{.gate = true}, Biases{.up = true}, Biases{.down = true},
                               Biases{.gate = true, .down = true}, Biases{.up = true, .down = true}}) {
    Spec s = spec(17, 40, 72);
    s.biases = biases;
    expect_right(s, random);
  }
}

// Rests of tiles, several panels of columns and blocks of tokens, and pointers of any alignment.
TEST_P(Bias, Shapes) {
  Random random = test_random();
  for (const std::int64_t T : {1, 8, 65}) {
    for (const std::int64_t F : {1, 3, 63, 65, 129, 257}) {
      const std::vector<Layout> layouts = layouts_of(GetParam().op, F);
      Spec s = biased(T, 1 + static_cast<std::int64_t>(random() % 130), F);
      s.layout = layouts[random() % layouts.size()];
      s.padding = {.x = 1, .out = 3};
      s.shift = static_cast<std::int64_t>(random() % 5);
      expect_right(s, random);
    }
  }
  expect_right(biased(513, 24, 70), random);
}

// Every element the correctly rounded one: no bias is left out, added twice, or rounded on its way.
TEST_P(Bias, SmallIntegers) {
  Random random = test_random();
  std::vector<Activation> exact_activations{Activation::identity(), Activation::relu(),
                                            Activation::swiglu_clamped(3.0F, 0.0F, 1.0F)};
  if (!uses_activation(GetParam().op)) exact_activations.resize(1);
  for (const Activation& activation : exact_activations) {
    for (const Layout& layout : layouts_of(GetParam().op, 160)) {
      Spec s = biased(11, 137, 160);
      s.layout = layout;
      s.activation = activation;
      s.values = s.op == GATEFOLD_OP_MLP ? Values::sparse_integers : Values::small_integers;
      expect_exact(s, random);
    }
  }
}

// Of sums over nothing the biases are left.
TEST_P(Bias, EmptySums) {
  Random random = test_random();
  for (const Layout& layout : layouts_of(GetParam().op, 32)) {
    Spec no_sum = biased(5, 0, 32);
    no_sum.layout = layout;
    no_sum.activation = Activation::identity();
    no_sum.values = Values::small_integers;
    expect_exact(no_sum, random);
    if (GetParam().op != GATEFOLD_OP_MLP) continue;
    Spec no_h = biased(5, 24, 0);
    no_h.layout = layout;
    expect_exact(no_h, random);
  }
}

// Biases change nothing of who takes a problem, and of who is chosen.
TEST(BiasChoice, IsThatWithoutBiases) {
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP}) {
    Desc desc{.op = op, .dtype = GATEFOLD_DTYPE_BF16, .device = device_memory().device()};
    if (uses_layout(op)) desc.layout = Layout::separate();
    if (uses_activation(op)) desc.activation = Activation::silu();
    desc.hidden_size = 256;
    desc.intermediate_size = 512;
    const Plan without(desc);
    desc.biases = {.up = true};
    const Plan with(desc);
    for (const std::int64_t tokens : {1, 12, 64, 65, 200, 5000}) {
      EXPECT_EQ(with.implementation(tokens), without.implementation(tokens)) << tokens << " tokens";
      const std::vector<Candidate> expected = without.explain(tokens);
      const std::vector<Candidate> candidates = with.explain(tokens);
      ASSERT_EQ(candidates.size(), expected.size());
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        EXPECT_EQ(candidates[i].name, expected[i].name);
        EXPECT_EQ(candidates[i].eligible, expected[i].eligible) << candidates[i].name << ": " << candidates[i].reason;
      }
    }
  }
}

class SpecialBias : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, SpecialBias, testing::ValuesIn(products_of_special_values()), target_name);

// Each special value as a bias, of gate and of up: it reaches its own column in every row, and no other.
TEST_P(SpecialBias, ReachesItsColumn) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Random random = test_random();
  const double largest = format_of(GetParam().dtype).largest;
  const std::vector<double> values{0.0,
                                   -0.0,
                                   infinity,
                                   -infinity,
                                   std::numeric_limits<double>::quiet_NaN(),
                                   std::min(largest, 0x1p60),
                                   -std::min(largest, 0x1p60)};
  const auto count = static_cast<std::int64_t>(values.size());
  for (const Activation& activation : activations_of(GetParam().op)) {
    Spec s = spec(5, 67, 2 * count + 3);
    s.activation = activation;
    s.biases = every_bias;
    SCOPED_TRACE(describe(s));
    Experiment experiment(s, random);
    for (std::int64_t i = 0; i < count; ++i) {
      if (s.op == GATEFOLD_OP_GATE_UP) experiment.set_gate_bias(i, values[i]);
      experiment.set_up_bias(count + i, values[i]);
    }
    if (!experiment.run(GetParam().implementation)) return;
    const gatefold_error_report report = experiment.check(GATEFOLD_DATA_ANY);
    EXPECT_EQ(report.violations, 0) << "row " << report.worst_row << " column " << report.worst_column << ": "
                                    << experiment.out(report.worst_row, report.worst_column);
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      for (std::int64_t f = 2 * count; f < s.intermediate_size; ++f) {
        EXPECT_TRUE(std::isfinite(experiment.out(t, f))) << "row " << t << " column " << f;
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
