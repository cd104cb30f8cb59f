#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/element.hpp"
#include "support/experiment.hpp"

// Special values in the inputs of products: each of them in x against each of them in the weights, at one term of every
// sum. For whichever back end: gatefold_check decides what is right.
namespace gatefold::test {

// Subnormals and infinities never meet: where a subnormal counts as 0 (bf16's dot products, some activations), its
// product with an infinity is NaN.
enum class Extremes : std::uint8_t { subnormal, infinite };

inline std::vector<double> special_factors(gatefold_dtype dtype, Extremes extremes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Format format = format_of(dtype);
  const bool fp16 = dtype == GATEFOLD_DTYPE_FP16;
  const double subnormal = std::ldexp(1.0, format.min_exponent - format.significand_bits + 1);
  const double small = extremes == Extremes::subnormal ? subnormal : fp16 ? 0x1p-14 : 0x1p-100;
  const double huge = fp16 ? format.largest : 0x1p60;  // its square is still an fp32
  const double largest = extremes == Extremes::infinite ? infinity : huge;
  return {1.0, 0.0, -0.0, small, -small, huge, -huge, largest, -largest, nan};
}

// A row of x for each value, and a column for each in the gate's weights, then one for each in up's.
constexpr std::int64_t special_rows = 10;
constexpr std::int64_t special_columns = 2 * special_rows;

inline void set_special_products(Experiment& experiment, Extremes extremes, std::int64_t k) {
  const Spec& s = experiment.spec();
  const std::vector<double> values = special_factors(s.dtype, extremes);
  constexpr std::int64_t rows = special_rows;
  for (std::int64_t t = 0; t < rows; ++t) experiment.set_x(t, k, values[t]);
  for (std::int64_t f = 0; f < 2 * rows; ++f) {
    const bool in_gate = f < rows;
    // Where nothing special stands +-1 does, so that a huge x makes a huge sum: between, an activation may underflow in
    // one way of rounding and not in another, and its product with an infinity be NaN or not.
    const double sign = f % 2 == 0 ? 1.0 : -1.0;
    if (s.op == GATEFOLD_OP_GATE_UP) experiment.set_gate_weight(f, k, in_gate ? values[f] : sign);
    experiment.set_up_weight(f, k, in_gate ? sign : values[f - rows]);
    if (s.op == GATEFOLD_OP_GEMM_GATED && in_gate) {
      for (std::int64_t t = 0; t < rows; ++t) experiment.set_gate_operand(t, f, values[f]);
    }
  }
}

}  // namespace gatefold::test
