#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/targets.hpp"
#include "support/independent.hpp"
#include "support/memory.hpp"
#include "support/special_products.hpp"

// The special values of the other products' tests, in an mlp: in x and the weights of gate and up, at one term of their
// sums over D; and in those of down, at one term of its sum over F.
namespace gatefold::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// CUDA multiplies fp32 by two parts of each number, of which an infinite one's are not (docs/numerics.md).
std::vector<Target> mlps() {
  std::vector<Target> result = targets({GATEFOLD_OP_MLP});
  if (device_memory().device() == GATEFOLD_DEVICE_CPU) return result;
  std::erase_if(result, [](const Target& target) { return target.dtype == GATEFOLD_DTYPE_FP32; });
  return result;
}

// Where one sum of h is infinite and the activation or a clamp made it finite, no error comes of it, but still of the
// other sum, two roundings and an evaluation. For an h of one column, and down of +-1.
double bound_beside_an_infinite_sum(const Experiment& e, std::int64_t t, double truth) {
  const Spec& s = e.spec();
  double gate = 0.0;
  double gate_magnitude = 0.0;
  double up_magnitude = 0.0;
  for (std::int64_t k = 0; k < s.hidden_size; ++k) {
    gate += e.x(t, k) * e.gate_weight(0, k);
    gate_magnitude += std::abs(e.x(t, k) * e.gate_weight(0, k));
    up_magnitude += std::abs(e.x(t, k) * e.up_weight(0, k));
  }
  const double gamma = static_cast<double>(s.hidden_size) * 0x1p-24 + 0x1p-21;
  const double largest_factor = s.activation.limit + std::abs(s.activation.beta);  // an infinite up is a clamped one
  const double of_gate = std::isfinite(gate_magnitude) ? 1.13 * gate_magnitude * largest_factor : 0.0;
  const auto activated = static_cast<double>(activate(s.activation, gate));
  const double of_up = std::isfinite(up_magnitude) ? up_magnitude * std::abs(activated) : 0.0;
  const double rounding = std::ldexp(1.0, 1 - format_of(s.dtype).significand_bits) + 0x1p-19;
  return rounding * std::abs(truth) + gamma * (of_gate + of_up) + (s.dtype == GATEFOLD_DTYPE_FP16 ? 0x1p-24 : 0x1p-118);
}

// NaN where the truth is, an infinity of its sign where the truth is one, and else within the bound.
bool is_right(double out, const Bounded& truth, gatefold_dtype dtype) {
  const Format format = format_of(dtype);
  if (std::isnan(truth.value)) return std::isnan(out);
  if (std::isinf(truth.value)) return out == truth.value;
  if (std::isinf(out)) {
    const bool may_overflow = std::abs(truth.value) + truth.bound >= format.largest;
    return may_overflow && std::signbit(out) == std::signbit(truth.value);
  }
  return std::abs(out - truth.value) <= truth.bound;
}

class SpecialMlp : public TargetTest {
 protected:
  void expect_table(Experiment& experiment) const {
    if (!experiment.run(GetParam().implementation)) return;
    std::vector<Bounded> truth = independent_truth(experiment, GATEFOLD_DATA_ANY);
    const std::int64_t columns = experiment.columns();
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(truth.size()); ++i) {
      const double out = experiment.out(i / columns, i % columns);
      if (std::isfinite(truth[i].value) && !std::isfinite(truth[i].bound)) {
        ASSERT_EQ(experiment.spec().intermediate_size, 1);
        truth[i].bound = bound_beside_an_infinite_sum(experiment, i / columns, truth[i].value);
      }
      ASSERT_TRUE(is_right(out, truth[i], GetParam().dtype))
          << "row " << i / columns << " column " << i % columns << ": " << out << ", truth " << truth[i].value
          << ", bound " << truth[i].bound;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, SpecialMlp, testing::ValuesIn(mlps()), target_name);

TEST_P(SpecialMlp, InXAndTheWeightsOfGateAndUp) {
  Random random = test_random();
  const auto run = [&](const Activation& activation, double weight, std::int64_t k) {
    Spec s = spec(special_rows, 67, 1);  // one column of h, so that a NaN of it is nobody else's
    s.activation = activation;
    SCOPED_TRACE(describe(s) + ", weight " + std::to_string(weight) + ", term " + std::to_string(k));
    for (const bool in_gate : {true, false}) {
      Experiment experiment(s, random);
      const std::vector<double> values = special_factors(s.dtype, Extremes::infinite);
      for (std::int64_t t = 0; t < special_rows; ++t) experiment.set_x(t, k, values[t]);
      experiment.set_gate_weight(0, k, in_gate ? weight : 1.0);
      experiment.set_up_weight(0, k, in_gate ? 1.0 : weight);
      for (std::int64_t d = 0; d < s.hidden_size; ++d) experiment.set_down(d, 0, d % 2 == 0 ? 1.0 : -1.0);
      expect_table(experiment);
    }
  };
  for (const Activation& activation : activations_of(GetParam().op)) {
    for (const double weight : special_factors(GetParam().dtype, Extremes::infinite)) {
      for (const std::int64_t k : {0, 33, 66}) run(activation, weight, k);
    }
  }
}

TEST_P(SpecialMlp, InTheWeightsOfDown) {
  Random random = test_random();
  for (const Activation& activation : activations_of(GetParam().op)) {
    for (const std::int64_t f : {0, 33, 66}) {
      Spec s = spec(3, 64, 67);
      s.activation = activation;
      SCOPED_TRACE(describe(s) + ", term " + std::to_string(f));
      Experiment experiment(s, random);
      const std::vector<double> values = special_factors(s.dtype, Extremes::infinite);
      // h is positive there and far from 0: an infinity keeps its sign, and nothing underflows.
      for (std::int64_t t = 0; t < s.tokens; ++t) experiment.set_x(t, 0, 16.0);
      experiment.set_gate_weight(f, 0, 4.0);
      experiment.set_up_weight(f, 0, 4.0);
      for (std::int64_t d = 0; d < s.hidden_size; ++d) experiment.set_down(d, f, values[d % special_rows]);
      expect_table(experiment);
    }
  }
}

// x's special values reach every column of h, and y is NaN or infinite in every one.
TEST_P(SpecialMlp, InXReachesEveryColumn) {
  Random random = test_random();
  for (const std::int64_t k : {0, 33, 66}) {
    Experiment experiment(spec(3, 67, 40), random);
    experiment.set_x(0, k, std::numeric_limits<double>::quiet_NaN());
    experiment.set_x(2, k, infinity);
    for (std::int64_t f = 0; f < 40; ++f) {
      experiment.set_gate_weight(f, k, 1.0);
      experiment.set_up_weight(f, k, 1.0);
    }
    expect_table(experiment);
  }
}

}  // namespace
}  // namespace gatefold::test
