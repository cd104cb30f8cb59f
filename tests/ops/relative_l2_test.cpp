#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "ops/targets.hpp"
#include "support/independent.hpp"
#include "support/kernels_of.hpp"

// Fusing must not only be fast: rounding once, from fp32, it must be more accurate than the unfused way, which rounds
// gate, up and the activation to the element type as well. A kernel that rounds the gate early passes every
// componentwise tolerance made for a kernel that does not look at this.
namespace gatefold::test {
namespace {

// The limits are for 16-bit types.
std::vector<Target> sixteen_bit_targets() {
  std::vector<Target> result = targets({GATEFOLD_OP_GATE_UP});
  std::erase_if(result, [](const Target& target) { return target.dtype == GATEFOLD_DTYPE_FP32; });
  return result;
}

class RelativeL2 : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, RelativeL2, testing::ValuesIn(sixteen_bit_targets()), target_name);

double l2_distance(const Experiment& experiment, const std::vector<double>& truth) {
  double error = 0.0;
  double size = 0.0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(truth.size()); ++i) {
    const double difference = experiment.out(i / experiment.columns(), i % experiment.columns()) - truth[i];
    error += difference * difference;
    size += truth[i] * truth[i];
  }
  return std::sqrt(error / size);
}

// A framework's eager way: two products, the activation and the last product, each rounded to the element type.
void replace_by_unfused(Experiment& experiment) {
  const Spec& s = experiment.spec();
  const auto rounded = [&](double value) { return round_to(s.dtype, value); };
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    for (std::int64_t f = 0; f < s.intermediate_size; ++f) {
      double gate = 0.0;
      double up = 0.0;
      for (std::int64_t k = 0; k < s.hidden_size; ++k) {
        gate += experiment.x(t, k) * experiment.gate_weight(f, k);
        up += experiment.x(t, k) * experiment.up_weight(f, k);
      }
      const double activated = rounded(static_cast<double>(activate(s.activation, rounded(gate))));
      experiment.set_out(t, f, rounded(activated * rounded(up)));
    }
  }
}

TEST_P(RelativeL2, IsBelowTheUnfusedWays) {
  const bool bf16 = GetParam().dtype == GATEFOLD_DTYPE_BF16;
  Random random = test_random();
  for (const Activation& activation : {Activation::silu(), Activation::gelu_tanh(), Activation::gelu_erf()}) {
    Spec s = spec(64, 256, 256);
    s.activation = activation;
    SCOPED_TRACE(describe(s));
    Experiment experiment(s, random);
    std::vector<double> truth(static_cast<std::size_t>(s.tokens * s.intermediate_size));
    double worst = 0.0;
    for (const std::string& kernel : kernels_of(s, GetParam().implementation)) {
      SCOPED_TRACE(kernel);
      if (!experiment.run(kernel)) GTEST_SKIP() << "not taken by " << GetParam().implementation;
      const double fused = experiment.check(GATEFOLD_DATA_ZERO_MEAN, truth.data()).relative_l2;
      EXPECT_NEAR(fused, l2_distance(experiment, truth), 1e-12);
      EXPECT_LE(fused, bf16 ? 1.9e-3 : 2.4e-4);
      worst = std::max(worst, fused);
    }

    replace_by_unfused(experiment);
    const double unfused = l2_distance(experiment, truth);
    EXPECT_LE(worst, 0.65 * unfused) << "the unfused way: " << unfused;
    std::printf("  %-12s relative L2 %.2e, %.3f x the unfused way's\n", name(activation.kind).c_str(), worst,
                worst / unfused);
  }
}

}  // namespace
}  // namespace gatefold::test
