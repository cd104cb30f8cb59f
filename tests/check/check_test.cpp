#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/independent.hpp"
#include "support/names.hpp"

// gatefold_check decides what is right everywhere else, so it is tested against a computation of its own: by hand, and
// by tests/support/independent.cpp.
namespace gatefold::test {
namespace {

constexpr std::array checked_ops{GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED,
                                 GATEFOLD_OP_GATE_UP};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

gatefold_error_report check_one_product(float gate, float up, float out, double* truth = nullptr) {
  const Desc desc{.op = GATEFOLD_OP_ACT_AND_MUL,
                  .dtype = GATEFOLD_DTYPE_FP32,
                  .device = GATEFOLD_DEVICE_CPU,
                  .layout = Layout::separate(),
                  .activation = Activation::identity(),
                  .intermediate_size = 1};
  return check(desc, {.tokens = 1, .gate = &gate, .up = &up, .out = &out}, GATEFOLD_DATA_ANY, truth);
}

TEST(CheckByHand, GateUpOfTwoTermSums) {
  // gate = 1*2 + 2*(-1) = 0, 1*1 + 2*3 = 7; up = 1*4 + 2*1 = 6, 1*(-1) + 2*0.5 = 0
  const float x[] = {1, 2};
  const float w_gate[] = {2, -1, 1, 3};
  const float w_up[] = {4, 1, -1, 0.5F};
  float out[] = {3.0F, 0.0F};
  const Desc desc{.op = GATEFOLD_OP_GATE_UP,
                  .dtype = GATEFOLD_DTYPE_FP32,
                  .device = GATEFOLD_DEVICE_CPU,
                  .layout = Layout::separate(),
                  .activation = Activation::sigmoid(),
                  .hidden_size = 2,
                  .intermediate_size = 2};
  const Args args{.tokens = 1, .x = x, .gate = w_gate, .up = w_up, .out = out};
  double truth[2];
  gatefold_error_report report = check(desc, args, GATEFOLD_DATA_ANY, truth);
  EXPECT_EQ(truth[0], 3.0);  // sigma(0) * 6
  EXPECT_EQ(truth[1], 0.0);  // sigma(7) * 0
  EXPECT_EQ(report.violations, 0);
  EXPECT_EQ(report.max_abs, 0.0);
  EXPECT_EQ(report.relative_l2, 0.0);

  out[1] = 0.5F;
  report = check(desc, args, GATEFOLD_DATA_ANY);
  EXPECT_EQ(report.violations, 1);
  EXPECT_EQ(report.worst_row, 0);
  EXPECT_EQ(report.worst_column, 1);
  EXPECT_EQ(report.max_abs, 0.5);
  EXPECT_EQ(report.mean_abs, 0.25);
  EXPECT_DOUBLE_EQ(report.relative_l2, 0.5 / 3.0);
  // gamma = 2 * 2^-24 + 2^-21, A_g = 1 + 6, A_u = 1 + 1, up = 0, act = sigma(7)
  const double gamma = 0x1p-23 + 0x1p-21;
  EXPECT_NEAR(report.max_bound_ratio, 0.5 / (gamma * 2.0 / (1.0 + std::exp(-7.0))), 1.0);
}

TEST(CheckByHand, BiasesCountAsTermsOfTheirSums) {
  // gate = 1*2 + 3 = 5, up = 1*4 - 2 = 2
  const float x = 1.0F;
  const float w_gate = 2.0F;
  const float w_up = 4.0F;
  const float gate_bias = 3.0F;
  const float up_bias = -2.0F;
  float out = 10.0F;
  Desc desc{.op = GATEFOLD_OP_GATE_UP,
            .dtype = GATEFOLD_DTYPE_FP32,
            .device = GATEFOLD_DEVICE_CPU,
            .layout = Layout::separate(),
            .activation = Activation::identity(),
            .hidden_size = 1,
            .intermediate_size = 1,
            .biases = {.gate = true, .up = true}};
  Args args{
      .tokens = 1, .x = &x, .gate = &w_gate, .up = &w_up, .out = &out, .gate_bias = &gate_bias, .up_bias = &up_bias};
  double truth = 0.0;
  EXPECT_EQ(check(desc, args, GATEFOLD_DATA_ANY, &truth).max_abs, 0.0);
  EXPECT_EQ(truth, 10.0);

  out = 10.5F;
  // u|h| + 2^-20|h| + gamma (A_g |up| + A_u |act|), A_g = 2 + 3, A_u = 4 + 2, gamma = 2^-24 + 2^-21; the rest is <
  // 1e-35
  const double bound = 10.0 * (0x1p-24 + 0x1p-20) + (0x1p-24 + 0x1p-21) * (5.0 * 2.0 + 6.0 * 5.0);
  EXPECT_NEAR(check(desc, args, GATEFOLD_DATA_ANY).max_bound_ratio, 0.5 / bound, 1e-6 * 0.5 / bound);

  // A packed layout's one vector: up's first.
  const float weights[] = {4.0F, 2.0F};
  const float biases[] = {-2.0F, 3.0F};
  out = 10.0F;
  desc.layout = Layout::interleaved_up_gate(1);
  desc.biases = {.gate = true};
  args = {.tokens = 1, .x = &x, .gate = weights, .out = &out, .gate_bias = biases};
  EXPECT_EQ(check(desc, args, GATEFOLD_DATA_ANY, &truth).max_abs, 0.0);
  EXPECT_EQ(truth, 10.0);
}

TEST(CheckByHand, NonFiniteResults) {
  constexpr float big = std::numeric_limits<float>::max();
  const auto inf = static_cast<float>(infinity);
  const auto not_a_number = static_cast<float>(nan);
  EXPECT_EQ(check_one_product(2.0F, 3.0F, not_a_number).violations, 1);
  EXPECT_EQ(check_one_product(2.0F, 3.0F, not_a_number).max_bound_ratio, infinity);
  EXPECT_EQ(check_one_product(2.0F, 3.0F, inf).violations, 1);
  EXPECT_EQ(check_one_product(inf, 3.0F, inf).violations, 0);
  EXPECT_EQ(check_one_product(inf, 3.0F, -inf).violations, 1);
  EXPECT_EQ(check_one_product(inf, 3.0F, big).violations, 1);
  EXPECT_EQ(check_one_product(inf, 0.0F, not_a_number).violations, 0);
  EXPECT_EQ(check_one_product(inf, 0.0F, 0.0F).violations, 1);
  EXPECT_EQ(check_one_product(big, 2.0F, inf).violations, 0) << "2 max overflows";
  EXPECT_EQ(check_one_product(big, 2.0F, -inf).violations, 1);
  EXPECT_EQ(check_one_product(big, 2.0F, big).violations, 1);
}

// A gate or an up that is infinite, of a sum or of an operand, and of which the activation or the clamp makes a number.
TEST(CheckByHand, FiniteResultsOfInfiniteSums) {
  const auto inf = static_cast<float>(infinity);
  const auto violations = [](const Activation& activation, float gate, float up, float out) {
    const float x = 1.0F;
    const Desc desc{.op = GATEFOLD_OP_GATE_UP,
                    .dtype = GATEFOLD_DTYPE_FP32,
                    .device = GATEFOLD_DEVICE_CPU,
                    .layout = Layout::separate(),
                    .activation = activation,
                    .hidden_size = 1,
                    .intermediate_size = 1};
    return check(desc, {.tokens = 1, .x = &x, .gate = &gate, .up = &up, .out = &out}, GATEFOLD_DATA_ANY).violations;
  };
  const Activation relu = Activation::relu();
  EXPECT_EQ(violations(relu, -inf, 2.0F, 12345.0F), 1);
  EXPECT_EQ(violations(relu, -inf, 2.0F, inf), 1);
  EXPECT_EQ(violations(relu, -inf, 2.0F, 0.0F), 0);
  EXPECT_EQ(violations(relu, -inf, 0.0F, 0.0F), 0);
  EXPECT_EQ(violations(relu, -inf, 0.0F, 1.0F), 1);
  EXPECT_EQ(violations(Activation::sigmoid(), inf, 2.0F, 2.0F), 0);
  EXPECT_EQ(violations(Activation::sigmoid(), inf, 2.0F, 2.001F), 1);
  EXPECT_EQ(violations(Activation::sigmoid(), -inf, 2.0F, 0.0F), 0);
  EXPECT_EQ(violations(Activation::sigmoid(), -inf, 2.0F, 1.0F), 1);
  const Activation clamped = Activation::swiglu_clamped(7.0F, 0.0F, 1.0F);  // sigma is 1/2
  EXPECT_EQ(violations(clamped, inf, 2.0F, 10.5F), 0);
  EXPECT_EQ(violations(clamped, inf, 2.0F, 10.6F), 1);
  EXPECT_EQ(violations(clamped, 2.0F, -inf, -6.0F), 0);
  EXPECT_EQ(violations(clamped, 2.0F, -inf, 6.0F), 1);
}

TEST(CheckByHand, NothingToCheck) {
  const Desc desc{.op = GATEFOLD_OP_ACT_AND_MUL,
                  .dtype = GATEFOLD_DTYPE_BF16,
                  .device = GATEFOLD_DEVICE_CPU,
                  .layout = Layout::separate(),
                  .activation = Activation::silu(),
                  .intermediate_size = 8};
  const gatefold_error_report report = check(desc, {.tokens = 0}, GATEFOLD_DATA_ANY);
  EXPECT_EQ(report.violations, 0);
  EXPECT_EQ(report.relative_l2, 0.0);
  EXPECT_EQ(report.max_bound_ratio, 0.0);
}

using Case = std::tuple<gatefold_op, gatefold_dtype, gatefold_data>;

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  const auto& [op, dtype, data] = tested.param;
  return name(op) + "_" + name(dtype) + (data == GATEFOLD_DATA_ANY ? "_any" : "_zero_mean");
}

// The cases in which a step of the type is small beside the bound, so that the bound can be met closely.
std::vector<Case> fine_cases() {
  std::vector<Case> cases;
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP}) {
    for (const gatefold_data data : {GATEFOLD_DATA_ANY, GATEFOLD_DATA_ZERO_MEAN}) {
      cases.emplace_back(op, GATEFOLD_DTYPE_FP32, data);
    }
  }
  return cases;
}

class CheckAgainstPlain : public testing::TestWithParam<Case> {
 protected:
  Spec spec(const Activation& activation, const Layout& layout) const {
    return {.op = std::get<0>(GetParam()),
            .dtype = std::get<1>(GetParam()),
            .layout = layout,
            .activation = activation,
            .tokens = 7,
            .hidden_size = 300,  // more than one chunk of the library's sums
            .intermediate_size = 24,
            .padding = {.x = 2, .gate = 3, .up = 0, .down = 0, .out = 1}};
  }
  gatefold_data data() const { return std::get<2>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, CheckAgainstPlain,
                         testing::Combine(testing::ValuesIn(checked_ops), testing::ValuesIn(all_dtypes),
                                          testing::Values(GATEFOLD_DATA_ANY, GATEFOLD_DATA_ZERO_MEAN)),
                         case_name);

TEST_P(CheckAgainstPlain, TruthAndReportAgree) {
  Random random = test_random();
  for (const Activation& activation : all_activations) {
    for (const Layout& layout : layouts_for(24)) {
      Spec s = spec(activation, layout);
      s.biases = {.gate = random() % 2 == 0, .up = random() % 2 == 0};
      SCOPED_TRACE(describe(s));
      Experiment experiment(s, random);
      const std::vector<Bounded> plain = independent_truth(experiment, data());
      double max_abs = 0.0;
      double max_ratio = 0.0;
      std::int64_t violations = 0;
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(plain.size()); ++i) {
        // Off by up to twice the bound, where the type is fine enough to tell.
        const double aim = plain[i].value + plain[i].bound * std::uniform_real_distribution<double>(-2, 2)(random);
        experiment.set_out(i / 24, i % 24, round_to(s.dtype, aim));
        const double error = std::abs(experiment.out(i / 24, i % 24) - plain[i].value);
        max_abs = std::max(max_abs, error);
        max_ratio = std::max(max_ratio, error / plain[i].bound);
        violations += error > plain[i].bound ? 1 : 0;
      }
      std::vector<double> truth(plain.size());
      const gatefold_error_report report = experiment.check(data(), truth.data());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        // Double precision rounds each of 300 terms by 2^-53, which the bound's own 2^-24 of them dwarfs.
        ASSERT_NEAR(truth[i], plain[i].value, 1e-6 * plain[i].bound) << "element " << i;
      }
      EXPECT_EQ(report.violations, violations);
      EXPECT_GT(report.violations, 0);
      EXPECT_NEAR(report.max_abs, max_abs, 1e-6 * max_abs);
      EXPECT_NEAR(report.max_bound_ratio, max_ratio, 1e-5 * max_ratio);
    }
  }
}

class CheckLimit : public CheckAgainstPlain {};
INSTANTIATE_TEST_SUITE_P(All, CheckLimit, testing::ValuesIn(fine_cases()), case_name);

TEST_P(CheckLimit, AcceptsJustBelowAndFlagsJustAbove) {
  Random random = test_random();
  for (const Activation& activation : all_activations) {
    Spec s = spec(activation, Layout::separate());
    s.biases = {.gate = random() % 2 == 0, .up = random() % 2 == 0};
    SCOPED_TRACE(describe(s));
    Experiment experiment(s, random);
    const std::vector<Bounded> plain = independent_truth(experiment, data());
    const auto set_all = [&](double bounds) {
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(plain.size()); ++i) {
        const double sign = i % 2 == 0 ? 1.0 : -1.0;
        experiment.set_out(i / 24, i % 24,
                           round_to(GATEFOLD_DTYPE_FP32, plain[i].value + sign * bounds * plain[i].bound));
      }
    };
    // A step of fp32 is at most 2^-23 |value|, and the bound at least 17 * 2^-24 |value|.
    set_all(0.9);
    EXPECT_EQ(experiment.check(data()).violations, 0) << name(activation.kind);
    set_all(1.1);
    EXPECT_EQ(experiment.check(data()).violations, static_cast<std::int64_t>(plain.size())) << name(activation.kind);
  }
}

}  // namespace
}  // namespace gatefold::test
