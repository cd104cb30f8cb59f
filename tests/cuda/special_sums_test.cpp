#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/targets.hpp"
#include "support/independent.hpp"
#include "support/kernels_of.hpp"
#include "support/special_products.hpp"

// NaN, infinities, zeros, subnormal and huge numbers in the inputs of products, and so in what the epilogues activate:
// by every compiled kernel with every activation. docs/numerics.md has the table.
namespace gatefold::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double activated(const Activation& a, double g) {
  switch (a.kind) {
    case GATEFOLD_ACTIVATION_SILU: return g * sigmoid(g);
    case GATEFOLD_ACTIVATION_GELU_TANH: return g * sigmoid(1.5957691216057308 * (g + 0.044715 * g * g * g));
    case GATEFOLD_ACTIVATION_GELU_ERF: return 0.5 * g * std::erfc(-g * 0.70710678118654752);
    case GATEFOLD_ACTIVATION_RELU: return g < 0.0 ? 0.0 : g;
    case GATEFOLD_ACTIVATION_SIGMOID: return sigmoid(g);
    case GATEFOLD_ACTIVATION_IDENTITY: return g;
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: {
      const double clamped = g > a.limit ? a.limit : g;
      return clamped * sigmoid(a.alpha * clamped);
    }
  }
  return g;
}

double factor(const Activation& a, double u) {
  if (a.kind != GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) return u;
  return (u > a.limit ? a.limit : u < -a.limit ? -a.limit : u) + a.beta;
}

struct Edge {
  double gate;
  double up;
};

// An activation that underflows in one way of computing it and not in another times an infinity is either's.
std::vector<Edge> edges(gatefold_dtype dtype) {
  const Format format = format_of(dtype);
  const double smallest = std::ldexp(1.0, format.min_exponent - format.significand_bits + 1);
  const double huge = format.largest / 4;
  std::vector<Edge> result;
  for (const double magnitude : {0.0, smallest, 1.0, 9.0, 20.0, 88.0, 104.0, 1000.0, huge, infinity}) {
    for (const double gate : {magnitude, -magnitude}) {
      for (const double up : {1.0, -2.0, 0.0, smallest, huge, -huge, infinity, -infinity, std::nan("")}) {
        const bool underflows = std::isfinite(gate) && (gate < -4.0 || (gate != 0.0 && std::abs(gate) < 1e-4));
        if (!(std::isinf(up) && underflows)) result.push_back({gate, up});
      }
    }
  }
  for (const double up : {1.0, 0.0, infinity}) result.push_back({std::nan(""), up});
  return result;
}

// What lies in one column of x and of the weights is all there is: the sums are exact.
void expect_edge(const Experiment& experiment, const Edge& edge, std::int64_t t, std::int64_t f) {
  const Spec& s = experiment.spec();
  const Format format = format_of(s.dtype);
  const double act = s.op == GATEFOLD_OP_GEMM ? 1.0 : activated(s.activation, edge.gate);
  const double up = s.op == GATEFOLD_OP_GEMM ? edge.up : factor(s.activation, edge.up);
  const double truth = act * up;
  const double out = experiment.out(t, f);
  SCOPED_TRACE(testing::Message() << "gate " << edge.gate << " up " << edge.up << ": truth " << truth << ", got "
                                  << out);
  if (std::isnan(truth)) {
    EXPECT_TRUE(std::isnan(out));
    return;
  }
  if (std::abs(truth) > format.largest * 1.01) {
    EXPECT_EQ(out, std::copysign(infinity, truth));
    return;
  }
  // The terms are those of docs/numerics.md. A gate whose activation is finite although it is not has no error.
  const bool sums_gate = s.op != GATEFOLD_OP_GEMM && std::isfinite(edge.gate);
  const double both = sums_gate ? std::abs(edge.gate * up) : 0.0;
  const double gamma = std::ldexp(static_cast<double>(s.hidden_size), -24);
  const double sums = gamma * (1.13 * both + std::abs(up * act));
  const bool tail = sums_gate && edge.gate < 0.0 && act != 0.0;
  const double exponent = tail ? std::max(0.0, -std::log(std::abs(act / edge.gate))) : 0.0;
  const double evaluation = (0x1p-20 + exponent * 0x1p-21) * std::abs(truth) + 0x1p-22 * both;
  const double flushed = std::ldexp(std::abs(up), -119) + std::ldexp(std::abs(act), -126);
  const double floor = std::ldexp(1.0, s.dtype == GATEFOLD_DTYPE_FP16 ? -25 : -126);
  const double bound = std::ldexp(std::abs(truth), -format.significand_bits) + sums + evaluation + flushed + floor;
  EXPECT_FALSE(std::isnan(out));
  EXPECT_LT(std::abs(out), infinity);
  EXPECT_LE(std::abs(out - truth), bound);
}

class SpecialSums : public TargetTest {
 protected:
  void expect_edges(const std::string& kernel, const Spec& s, const std::vector<Edge>& all, std::int64_t column,
                    Random& random) const {
    Experiment experiment(s, random);
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      for (std::int64_t k = 0; k < s.hidden_size; ++k) experiment.set_x(t, k, k == column ? 1.0 : 0.0);
    }
    for (std::int64_t f = 0; f < s.intermediate_size; ++f) {
      const Edge& edge = all[static_cast<std::size_t>(f) % all.size()];
      experiment.set_up_weight(f, column, edge.up);
      if (s.op == GATEFOLD_OP_GATE_UP) experiment.set_gate_weight(f, column, edge.gate);
      for (std::int64_t t = 0; t < s.tokens && s.op == GATEFOLD_OP_GEMM_GATED; ++t) {
        experiment.set_gate_operand(t, f, edge.gate);
      }
    }
    if (!experiment.run(kernel)) return;
    for (std::int64_t t = 0; t < s.tokens; t += s.tokens - 1) {
      for (std::int64_t f = 0; f < s.intermediate_size; ++f) {
        expect_edge(experiment, all[static_cast<std::size_t>(f) % all.size()], t, f);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, SpecialSums, testing::ValuesIn(products_of_special_values()), target_name);

TEST_P(SpecialSums, FollowTheTable) {
  Random random = test_random();
  const std::vector<Edge> all = edges(GetParam().dtype);
  constexpr std::int64_t D = 72;
  for (const Activation& activation : activations_of(GetParam().op)) {
    for (const std::int64_t column : {std::int64_t{0}, D / 2, D - 1}) {
      Spec s = spec(3, D, (static_cast<std::int64_t>(all.size()) + 7) / 8 * 8);
      s.activation = activation;
      const std::vector<std::string> kernels = kernels_of(s, GetParam().implementation);
      for (const std::string& kernel : kernels) {
        SCOPED_TRACE(kernel + ", " + describe(s) + ", column " + std::to_string(column));
        expect_edges(kernel, s, all, column, random);
        if (HasFailure()) return;
      }
    }
  }
}

// Columns of silu may share a reciprocal where no gate value is NaN or far below zero (FourSilu of sm90): the same
// where all are such, up to the last.
TEST_P(SpecialSums, FollowTheTableWithoutGatesFarBelowZero) {
  if (GetParam().op != GATEFOLD_OP_GEMM_GATED) GTEST_SKIP() << "computes its gate";
  Random random = test_random();
  std::vector<Edge> some;
  for (const Edge& edge : edges(GetParam().dtype)) {
    if (edge.gate >= -20.0) some.push_back(edge);
  }
  for (const double gate : {-20.0, -19.875, -16.0, -12.0, -2.0}) {
    for (const double up : {1.0, -0x1p-14, 0x1p14, 0.0, -1.5}) some.push_back({gate, up});
  }
  Spec s = spec(3, 72, (static_cast<std::int64_t>(some.size()) + 7) / 8 * 8);
  s.activation = Activation::silu();
  for (const std::string& kernel : kernels_of(s, GetParam().implementation)) {
    SCOPED_TRACE(kernel + ", " + describe(s));
    expect_edges(kernel, s, some, 36, random);
    if (HasFailure()) return;
  }
}

// Two parts of an fp32 number: where one is infinite a result may be NaN that isn't, but never a wrong number.
TEST(SpecialParts, GiveNaNOrTheTruth) {
  Random random = test_random();
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP}) {
    for (const Activation& activation : activations_of(op)) {
      const Spec s{.op = op,
                   .dtype = GATEFOLD_DTYPE_FP32,
                   .activation = activation,
                   .tokens = special_rows,
                   .hidden_size = 72,
                   .intermediate_size = special_columns};
      SCOPED_TRACE(describe(s));
      Experiment experiment(s, random);
      set_special_products(experiment, Extremes::infinite, 36);
      ASSERT_TRUE(experiment.run("sm80"));
      const std::vector<Bounded> truth = independent_truth(experiment, GATEFOLD_DATA_ANY);
      for (std::int64_t t = 0; t < special_rows; ++t) {
        for (std::int64_t f = 0; f < special_columns; ++f) {
          if (std::isnan(experiment.out(t, f))) experiment.set_out(t, f, truth[t * special_columns + f].value);
        }
      }
      const gatefold_error_report report = experiment.check(GATEFOLD_DATA_ANY);
      EXPECT_EQ(report.violations, 0) << "row " << report.worst_row << " column " << report.worst_column << ": "
                                      << experiment.out(report.worst_row, report.worst_column);
    }
  }
}

}  // namespace
}  // namespace gatefold::test
