#include <cmath>
#include <limits>

#include "ops/targets.hpp"
#include "support/special_products.hpp"

// act_and_mul at the edges of the number range, held against PyTorch's own formulas in fp32: what is NaN there is NaN
// here, what is infinite there is infinite here with the same sign, and the rest is within its bound of the truth.
// docs/numerics.md has the table.
namespace gatefold::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// torch.nn.functional's kernels evaluate these in fp32, for 16-bit types too.
float torch_activate(const Activation& activation, float g) {
  switch (activation.kind) {
    case GATEFOLD_ACTIVATION_SILU: return g / (1.0F + std::exp(-g));
    case GATEFOLD_ACTIVATION_GELU_TANH: {
      const float inner = 0.79788456F * (g + 0.044715F * (g * g * g));
      return 0.5F * g * (1.0F + std::tanh(inner));
    }
    case GATEFOLD_ACTIVATION_GELU_ERF: return g * 0.5F * (1.0F + std::erf(g * 0.70710678F));
    case GATEFOLD_ACTIVATION_RELU: return g < 0.0F ? 0.0F : g;
    case GATEFOLD_ACTIVATION_SIGMOID: return 1.0F / (1.0F + std::exp(-g));
    case GATEFOLD_ACTIVATION_IDENTITY: return g;
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: {
      const float clamped = g > activation.limit ? activation.limit : g;
      return clamped / (1.0F + std::exp(-activation.alpha * clamped));
    }
  }
  return g;
}

float torch_factor(const Activation& activation, float u) {
  if (activation.kind != GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) return u;
  return (u > activation.limit ? activation.limit : u < -activation.limit ? -activation.limit : u) + activation.beta;
}

// Where the activation is 0 after rounding but not before, its product with an infinity depends on who rounds: NaN or
// infinity, for PyTorch by the element type.
bool underflows(float g, gatefold_dtype dtype) {
  const double smallest_normal = std::ldexp(1.0, format_of(dtype).min_exponent);
  return std::isfinite(g) && (g < -4.0F || (g != 0.0F && std::abs(g) <= smallest_normal));
}

struct Edge {
  float gate;
  float up;
};

std::vector<Edge> edges(gatefold_dtype dtype) {
  const Format format = format_of(dtype);
  const auto smallest_normal = static_cast<float>(std::ldexp(1.0, format.min_exponent));
  const auto smallest = static_cast<float>(std::ldexp(1.0, format.min_exponent - format.significand_bits + 1));
  const auto largest = static_cast<float>(format.largest);
  std::vector<Edge> result;
  for (const float magnitude : {0.0F, smallest, 3.0F * smallest, smallest_normal, 1.0F, 8.0F, 9.0F, 16.0F, 88.0F, 89.0F,
                                104.0F, 1000.0F, largest, infinity, nan}) {
    for (const float gate : {magnitude, -magnitude}) {
      for (const float up : {1.0F, -2.0F, 0.0F, -0.0F, smallest, largest, infinity, -infinity, nan}) {
        if (std::isinf(up) && underflows(gate, dtype)) continue;
        result.push_back({static_cast<float>(round_to(dtype, gate)), up});
      }
    }
  }
  return result;
}

class SpecialValues : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, SpecialValues, testing::ValuesIn(targets({GATEFOLD_OP_ACT_AND_MUL})), target_name);

void expect_as_torch(const Experiment& experiment, const std::vector<Edge>& edge, std::int64_t i) {
  const Spec& s = experiment.spec();
  const float activated = torch_activate(s.activation, edge[i].gate);
  const auto torch = static_cast<float>(round_to(s.dtype, activated * torch_factor(s.activation, edge[i].up)));
  const double out = experiment.out(0, i);
  SCOPED_TRACE("gate " + std::to_string(edge[i].gate) + " up " + std::to_string(edge[i].up) + ": PyTorch " +
               std::to_string(torch) + ", got " + std::to_string(out));
  EXPECT_EQ(std::isnan(out), std::isnan(torch));
  if (std::isinf(torch)) {
    EXPECT_EQ(out, torch);
  }
  const bool signed_zero = edge[i].gate == 0.0F && s.activation.kind != GATEFOLD_ACTIVATION_RELU;
  if (signed_zero && torch == 0.0F) {
    EXPECT_EQ(out, 0.0);
    EXPECT_EQ(std::signbit(out), std::signbit(torch));
  }
}

TEST_P(SpecialValues, BehaveAsPyTorchs) {
  Random random = test_random();
  const std::vector<Edge> edge = edges(GetParam().dtype);
  for (const Activation& activation : all_activations) {
    for (const std::int64_t shift : {0, 1}) {  // vectors from the start, or after a tail
      Spec s = spec(1, 0, static_cast<std::int64_t>(edge.size()));
      s.activation = activation;
      s.shift = shift;
      SCOPED_TRACE(describe(s));
      Experiment experiment(s, random);
      for (std::int64_t i = 0; i < s.intermediate_size; ++i) {
        experiment.set_gate_operand(0, i, edge[i].gate);
        experiment.set_up_operand(0, i, edge[i].up);
      }
      if (!experiment.run(GetParam().implementation)) GTEST_SKIP() << "not taken by " << GetParam().implementation;
      for (std::int64_t i = 0; i < s.intermediate_size; ++i) expect_as_torch(experiment, edge, i);
      const gatefold_error_report report = experiment.check(GATEFOLD_DATA_ANY);
      EXPECT_EQ(report.violations, 0) << "gate " << edge[report.worst_column].gate << " up "
                                      << edge[report.worst_column].up << " gave "
                                      << experiment.out(0, report.worst_column);
    }
  }
}

class SpecialProducts : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, SpecialProducts, testing::ValuesIn(products_of_special_values()), target_name);

TEST_P(SpecialProducts, InTheFirstAMiddleAndTheLastTerm) {
  Random random = test_random();
  const auto run = [&](const Activation& activation, Extremes extremes, std::int64_t D, std::int64_t k) {
    Spec s = spec(special_rows, D, special_columns);
    s.activation = activation;
    SCOPED_TRACE(describe(s) + ", term " + std::to_string(k));
    Experiment experiment(s, random);
    set_special_products(experiment, extremes, k);
    if (!experiment.run(GetParam().implementation)) return;
    const gatefold_error_report report = experiment.check(GATEFOLD_DATA_ANY);
    EXPECT_EQ(report.violations, 0) << "row " << report.worst_row << " column " << report.worst_column << ": "
                                    << experiment.out(report.worst_row, report.worst_column);
  };
  for (const Activation& activation : activations_of(GetParam().op)) {
    for (const Extremes extremes : {Extremes::subnormal, Extremes::infinite}) {
      for (const std::int64_t D : {67, 96}) {
        for (const std::int64_t k : {std::int64_t{0}, D / 2, D - 1}) run(activation, extremes, D, k);
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
