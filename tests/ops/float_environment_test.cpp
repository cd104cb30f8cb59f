#include <limits>

#include "ops/targets.hpp"
#include "support/float_modes.hpp"

// On the CPU: no thread's floating-point environment is used or changed. The caller's OpenMP threads may have another
// than the caller, and then results would depend on who computed them.
namespace gatefold::test {
namespace {

class FloatEnvironment : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, FloatEnvironment, testing::ValuesIn(all_targets()), target_name);

// The first token's products and sums are too small for a normal number; the second has an infinity, the third NaN.
void make_three_tokens_special(Experiment& experiment) {
  const Spec& s = experiment.spec();
  const bool weights = s.op != GATEFOLD_OP_ACT_AND_MUL;
  const auto set = [&](std::int64_t token, std::int64_t k, double value) {
    weights ? experiment.set_x(token, k, value) : experiment.set_gate_operand(token, k, value);
  };
  const double tiny = s.dtype == GATEFOLD_DTYPE_FP16 ? 1e-7 : 1e-38;
  for (std::int64_t k = 0; k < (weights ? s.hidden_size : s.intermediate_size); ++k) set(0, k, tiny);
  set(1, 3, std::numeric_limits<double>::infinity());
  set(2, 3, std::numeric_limits<double>::quiet_NaN());
}

void expect_the_same_in_every_mode(const Spec& s, const std::string& implementation, Random& random) {
  Experiment experiment(s, random);
  make_three_tokens_special(experiment);
  std::vector<std::byte> first;
  for (const FloatMode& mode : float_modes) {
    for (const int threads : {1, 2}) {
      const bool unchanged =
          in_float_mode(mode, threads, [&] { experiment.run(Plan(experiment.desc(implementation))); });
      if (first.empty()) first = experiment.out_bytes();
      EXPECT_EQ(experiment.out_bytes(), first) << describe(s) << ", " << threads << " threads, " << mode.name;
      EXPECT_TRUE(unchanged) << describe(s) << ", " << threads << " threads, " << mode.name;
    }
  }
}

TEST_P(FloatEnvironment, IsNeitherUsedNorChanged) {
  Random random = test_random();
  for (const Activation& activation : activations_of(GetParam().op)) {
    Spec s = spec(5, 130, 600);
    s.activation = activation;
    s.biases = every_bias;
    expect_the_same_in_every_mode(s, GetParam().implementation, random);
  }
}

// As many as outer products and widened weights take, in sums as long.
TEST_P(FloatEnvironment, NorWithManyTokens) {
  if (GetParam().implementation == "reference") GTEST_SKIP() << "the reference computes them as it does a few";
  Random random = test_random();
  expect_the_same_in_every_mode(spec(74, 2048, 48), GetParam().implementation, random);
}

}  // namespace
}  // namespace gatefold::test
