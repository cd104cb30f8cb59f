#include "support/independent.hpp"

#include <algorithm>
#include <cmath>

namespace gatefold::test {
namespace {

using Real = long double;

Real logistic(Real z) { return 1.0L / (1.0L + std::exp(-z)); }

// docs/numerics.md's constants.
struct Constants {
  Real rounding;
  Real gamma_hidden;        // of sums over D
  Real gamma_intermediate;  // of sums over F
  Real floor;
};

Real gamma(gatefold_dtype dtype, gatefold_data data, std::int64_t length) {
  const auto n = static_cast<Real>(length);
  const bool fp32 = dtype == GATEFOLD_DTYPE_FP32;
  const Real ceiling = n * 0x1p-24L;
  if (fp32) return (data == GATEFOLD_DATA_ANY ? ceiling : std::sqrt(n) * 0x1p-24L) + 0x1p-21L;
  if (data == GATEFOLD_DATA_ANY) return ceiling;
  const Real typical = n < 64 ? 8 * 0x1p-26L : std::sqrt(n) * 0x1p-26L;
  return typical < ceiling ? typical : ceiling;
}

Constants constants(const Spec& spec, gatefold_data data) {
  Constants c{};
  c.rounding = std::ldexp(1.0L, -format_of(spec.dtype).significand_bits);
  c.gamma_hidden = gamma(spec.dtype, data, spec.hidden_size);
  c.gamma_intermediate = gamma(spec.dtype, data, spec.intermediate_size);
  c.floor = spec.dtype == GATEFOLD_DTYPE_FP16 ? 0x1p-25L : 0x1p-126L;
  return c;
}

Real steepest(gatefold_activation kind) {
  switch (kind) {
    case GATEFOLD_ACTIVATION_SILU:
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: return static_cast<Real>(1.1);
    case GATEFOLD_ACTIVATION_GELU_TANH:
    case GATEFOLD_ACTIVATION_GELU_ERF: return static_cast<Real>(1.13);
    case GATEFOLD_ACTIVATION_SIGMOID: return 0.25L;
    case GATEFOLD_ACTIVATION_RELU:
    case GATEFOLD_ACTIVATION_IDENTITY: break;
  }
  return 1.0L;
}

struct Sum {
  Real value = 0.0L;
  Real magnitude = 0.0L;

  void add(Real a, Real b) {
    value += a * b;
    magnitude += std::abs(a * b);
  }
};

struct Element {
  Real value;
  Real bound;
};

// How far off e^z is, relatively, in the activation's negative tail.
Real exponential_error(const Activation& activation, Real gate) {
  switch (activation.kind) {
    case GATEFOLD_ACTIVATION_SILU:
    case GATEFOLD_ACTIVATION_SIGMOID: return 0x1p-23L * -gate;
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED:
      return 0x1p-23L * -activation.alpha * std::min<Real>(gate, activation.limit);
    case GATEFOLD_ACTIVATION_GELU_TANH:
      return 0x1p-21L * -std::sqrt(8.0L / std::acos(-1.0L)) * (gate + 0.044715L * gate * gate * gate);
    case GATEFOLD_ACTIVATION_GELU_ERF: return gate < 0.0L ? 0x1p-22L * gate * gate : 0.0L;
    case GATEFOLD_ACTIVATION_RELU:
    case GATEFOLD_ACTIVATION_IDENTITY: break;
  }
  return 0.0L;
}

// act(gate) * up from a gate and an up that are known up to gamma times their magnitudes.
Element gated(const Activation& activation, const Constants& c, const Sum& gate, const Sum& up) {
  const bool clamped = activation.kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED;
  const bool gelu = activation.kind == GATEFOLD_ACTIVATION_GELU_TANH || activation.kind == GATEFOLD_ACTIVATION_GELU_ERF;
  const Real limit = activation.limit;
  const Real activated = activate(activation, gate.value);
  const Real factor = clamped ? std::clamp(up.value, -limit, limit) + activation.beta : up.value;
  const Real value = activated * factor;
  Element h{value, c.rounding * std::abs(value)};
  h.bound += std::max(0x1p-20L, exponential_error(activation, gate.value)) * std::abs(value);
  h.bound += c.gamma_hidden * steepest(activation.kind) * gate.magnitude * std::abs(factor);
  h.bound += c.gamma_hidden * up.magnitude * std::abs(activated);
  h.bound += (gelu ? 0x1p-22L * std::abs(gate.value) : 0.0L) * std::abs(factor);
  h.bound += 0x1p-119L * std::abs(factor) + 0x1p-126L * std::abs(activated) + c.floor;
  return h;
}

// A matrix's elements, decoded once.
template <class Get>
std::vector<double> decoded(std::int64_t rows, std::int64_t columns, Get get) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) values.push_back(get(row, column));
  }
  return values;
}

struct Operands {
  std::vector<double> x, gate_weight, up_weight, down;
};

Operands decode_operands(const Experiment& e) {
  const Spec& s = e.spec();
  const bool halves = s.op == GATEFOLD_OP_GATE_UP || s.op == GATEFOLD_OP_MLP;
  const auto read = [&](double (Experiment::*get)(std::int64_t, std::int64_t) const) {
    return [&e, get](std::int64_t row, std::int64_t column) { return (e.*get)(row, column); };
  };
  Operands o;
  if (s.op == GATEFOLD_OP_ACT_AND_MUL) return o;
  o.x = decoded(s.tokens, s.hidden_size, read(&Experiment::x));
  o.up_weight = decoded(s.intermediate_size, s.hidden_size, read(&Experiment::up_weight));
  if (halves) o.gate_weight = decoded(s.intermediate_size, s.hidden_size, read(&Experiment::gate_weight));
  if (s.op == GATEFOLD_OP_MLP) o.down = decoded(s.hidden_size, s.intermediate_size, read(&Experiment::down));
  return o;
}

Sum product(const double* a, const double* b, std::int64_t length) {
  Sum sum;
  for (std::int64_t k = 0; k < length; ++k) sum.add(a[k], b[k]);
  return sum;
}

Element first_half(const Experiment& e, const Operands& o, const Constants& c, std::int64_t t, std::int64_t f) {
  const Spec& spec = e.spec();
  const std::int64_t D = spec.hidden_size;
  Sum gate;
  Sum up;
  if (spec.op == GATEFOLD_OP_ACT_AND_MUL) {
    up.value = e.up_operand(t, f);
  } else {
    up = product(o.x.data() + t * D, o.up_weight.data() + f * D, D);
    up.add(1.0L, e.up_bias(f));
  }
  switch (spec.op) {
    case GATEFOLD_OP_GEMM: return {up.value, c.rounding * std::abs(up.value) + c.gamma_hidden * up.magnitude + c.floor};
    case GATEFOLD_OP_ACT_AND_MUL:
    case GATEFOLD_OP_GEMM_GATED: gate.value = e.gate_operand(t, f); break;
    case GATEFOLD_OP_GATE_UP:
    case GATEFOLD_OP_MLP:
      gate = product(o.x.data() + t * D, o.gate_weight.data() + f * D, D);
      gate.add(1.0L, e.gate_bias(f));
      break;
  }
  return gated(spec.activation, c, gate, up);
}

}  // namespace

long double activate(const Activation& activation, long double gate) {
  switch (activation.kind) {
    case GATEFOLD_ACTIVATION_SILU: return gate * logistic(gate);
    case GATEFOLD_ACTIVATION_GELU_TANH: {
      const Real inner = std::sqrt(2.0L / std::acos(-1.0L)) * (gate + 0.044715L * gate * gate * gate);
      return gate * logistic(2.0L * inner);  // (1 + tanh z) / 2 = sigma(2 z)
    }
    case GATEFOLD_ACTIVATION_GELU_ERF: return 0.5L * gate * std::erfc(-gate / std::sqrt(2.0L));
    case GATEFOLD_ACTIVATION_RELU: return std::max(gate, 0.0L);
    case GATEFOLD_ACTIVATION_SIGMOID: return logistic(gate);
    case GATEFOLD_ACTIVATION_IDENTITY: return gate;
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: {
      const Real clamped = std::min(gate, static_cast<Real>(activation.limit));
      return clamped * logistic(activation.alpha * clamped);
    }
  }
  return gate;
}

std::vector<Bounded> independent_truth(const Experiment& e, gatefold_data data) {
  const Spec& spec = e.spec();
  const Constants c = constants(spec, data);
  const Operands o = decode_operands(e);
  std::vector<Bounded> result;
  std::vector<Element> row(static_cast<std::size_t>(spec.intermediate_size));
  for (std::int64_t t = 0; t < spec.tokens; ++t) {
    for (std::int64_t f = 0; f < spec.intermediate_size; ++f) row[f] = first_half(e, o, c, t, f);
    if (spec.op != GATEFOLD_OP_MLP) {
      for (const Element& h : row) result.push_back({static_cast<double>(h.value), static_cast<double>(h.bound)});
      continue;
    }
    for (std::int64_t d = 0; d < spec.hidden_size; ++d) {
      Sum y;
      Sum passed_on;  // what the errors of h come to
      for (std::int64_t f = 0; f < spec.intermediate_size; ++f) {
        const double down = o.down[d * spec.intermediate_size + f];
        y.add(row[f].value, down);
        passed_on.add(row[f].bound, down);
      }
      y.add(1.0L, e.down_bias(d));
      const Real magnitude = y.magnitude + passed_on.magnitude;  // of the sum over the h that was computed
      const Real before_rounding = passed_on.magnitude + c.gamma_intermediate * magnitude;
      const Real bound = before_rounding + c.rounding * (std::abs(y.value) + before_rounding) + c.floor;
      result.push_back({static_cast<double>(y.value), static_cast<double>(bound)});
    }
  }
  return result;
}

}  // namespace gatefold::test
