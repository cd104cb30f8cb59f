#include "cpu/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/float16.hpp"
#include "cpu/activation.hpp"
#include "cpu/threads.hpp"
#include "cpu/truth.hpp"

namespace gatefold::cpu {
namespace {

// The terms of the bound that do not change from element to element. Derived in docs/numerics.md.
struct BoundTerms {
  double rounding;      // u, of the stored result
  double gamma;         // of a sum of D products, relative to the sum of their magnitudes
  double slope;         // of the activation
  double evaluation;    // relative error of evaluating the activation and the last product
  double exponential;   // of e^z, relative to |z|: z is rounded, and in gelu itself computed
  double cancellation;  // of gelu's 1 + erf and 1 + tanh for g < 0: absolute, relative to |g| |up|
  double floor;         // half of the type's smallest subnormal, or where fp32 arithmetic flushes subnormals
};

bool is_gelu(ActivationKind kind) { return kind == ActivationKind::gelu_tanh || kind == ActivationKind::gelu_erf; }

BoundTerms bound_terms(const Problem& p, bool zero_mean) {
  const bool gelu = is_gelu(p.activation.kind);
  BoundTerms terms{};
  terms.rounding = rounding_error(p.types.out);
  terms.gamma = sum_error(p.types.x, p.hidden_size, zero_mean);
  terms.slope = largest_slope(p.activation);
  terms.evaluation = p.op == Op::gemm ? 0.0 : 0x1p-20;
  terms.exponential = gelu ? 0x1p-21 : 0x1p-23;
  terms.cancellation = gelu ? 0x1p-22 : 0.0;
  terms.floor = p.types.out == DType::fp16 ? 0x1p-25 : 0x1p-126;
  return terms;
}

// How far a sum's rounding can carry the result. A sum that is infinite is so in any precision: activations and clamps
// that make a number of it make the same one.
double error_of_sum(double sum, double magnitude, double effect) {
  return std::isinf(sum) ? 0.0 : magnitude * std::abs(effect);
}

double bound(const BoundTerms& terms, const Activation& act, const Tile::Entry& e) {
  // Only where sigma ~ e^z: for z > 0 it is near 1. Beyond 1024 nothing is left of it.
  const double tail = std::clamp(-exponent(act, e.gate), 0.0, 1024.0);
  const double evaluation = std::max(terms.evaluation, terms.exponential * tail);
  const double sums =
      terms.slope * error_of_sum(e.gate, e.gate_magnitude, e.factor) + error_of_sum(e.up, e.up_magnitude, e.activated);
  const double cancelled = terms.cancellation > 0.0 ? terms.cancellation * std::abs(e.gate * e.factor) : 0.0;
  // sigma below 2^-126 may be flushed to 0, where |g| < 128; so may a subnormal gate or up.
  const double flushed = 0x1p-119 * std::abs(e.factor) + 0x1p-126 * std::abs(e.activated);
  return (terms.rounding + evaluation) * std::abs(e.value) + terms.gamma * sums + cancelled + flushed + terms.floor;
}

double largest_finite(DType dtype) {
  return dtype == DType::fp16 ? 65504.0 : dtype == DType::bf16 ? 0x1.fep127 : 0x1.fffffep127;
}

struct Totals {
  double max_abs = 0.0;
  double sum_abs = 0.0;
  double sum_square_error = 0.0;
  double sum_square_truth = 0.0;
  double max_ratio = -1.0;
  std::int64_t violations = 0;
  std::int64_t worst_row = 0;
  std::int64_t worst_column = 0;

  void add(double out, const Tile::Entry& truth, double ratio, std::int64_t row, std::int64_t column) {
    if (std::isfinite(out) && std::isfinite(truth.value)) {
      const double error = std::abs(out - truth.value);
      max_abs = std::max(max_abs, error);
      sum_abs += error;
      sum_square_error += error * error;
      sum_square_truth += truth.value * truth.value;
    }
    if (ratio > 1.0) ++violations;
    if (ratio > max_ratio) {
      max_ratio = ratio;
      worst_row = row;
      worst_column = column;
    }
  }

  void add(const Totals& other) {
    max_abs = std::max(max_abs, other.max_abs);
    sum_abs += other.sum_abs;
    sum_square_error += other.sum_square_error;
    sum_square_truth += other.sum_square_truth;
    violations += other.violations;
    if (other.max_ratio > max_ratio) {
      max_ratio = other.max_ratio;
      worst_row = other.worst_row;
      worst_column = other.worst_column;
    }
  }
};

gatefold_error_report summarise(const Totals& totals, std::int64_t elements) {
  gatefold_error_report report{};
  if (elements == 0) return report;
  report.max_abs = totals.max_abs;
  report.mean_abs = totals.sum_abs / static_cast<double>(elements);
  report.relative_l2 =
      totals.sum_square_error == 0.0 ? 0.0 : std::sqrt(totals.sum_square_error / totals.sum_square_truth);
  report.max_bound_ratio = totals.max_ratio;
  report.violations = totals.violations;
  report.worst_row = totals.worst_row;
  report.worst_column = totals.worst_column;
  return report;
}

}  // namespace

double rounding_error(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::fp16 ? 0x1p-11 : 0x1p-24; }

// 16-bit products are exact in fp32, and the tensor core's sums lose less than a rounding each; fp32 products round.
// Below 64 terms single roundings count, and the typical error stays where it is at 64.
double sum_error(DType dtype, std::int64_t depth, bool zero_mean) {
  const auto D = static_cast<double>(depth);
  const bool fp32 = dtype == DType::fp32;
  const double ceiling = D * 0x1p-24;
  const double typical = fp32 ? std::sqrt(D) * 0x1p-24 : std::min(std::sqrt(std::max(D, 64.0)) * 0x1p-26, ceiling);
  return (zero_mean ? typical : ceiling) + (fp32 ? 0x1p-21 : 0.0);
}

double element_bound(const Problem& problem, bool zero_mean, const Tile::Entry& entry) {
  return bound(bound_terms(problem, zero_mean), problem.activation, entry);
}

// |out - truth| / bound, where a result beyond the type's range must be the infinity of its sign.
double bound_ratio(double out, double truth, double bound, DType dtype) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(truth)) return std::isnan(out) ? 0.0 : wrong;
  if (std::isinf(truth)) return out == truth ? 0.0 : wrong;
  if (std::isinf(out)) {
    const bool may_overflow = std::abs(truth) + bound >= largest_finite(dtype);
    return may_overflow && std::signbit(out) == std::signbit(truth) ? 0.0 : wrong;
  }
  if (!std::isfinite(bound)) return out == truth ? 0.0 : wrong;  // it would let anything through, or nothing
  const double ratio = std::abs(out - truth) / bound;
  return std::isnan(ratio) ? wrong : ratio;
}

gatefold_error_report check(const Problem& p, const Operands& operands, bool zero_mean, double* truth_out) {
  const std::int64_t F = p.intermediate_size;
  if (operands.tokens == 0 || F == 0) return {};
  const BoundTerms terms = bound_terms(p, zero_mean);
  const std::int64_t tiles = tile_count(operands.tokens, F);
  Totals totals;
  std::mutex mutex;
  share_out_dynamically(tiles, thread_limit(), [&](std::int64_t index) {
    Totals mine;
    const TileRange range = tile_range(operands.tokens, F, index);
    const Tile tile = truth(p, operands, range);
    for (int i = 0; i < range.rows; ++i) {
      for (int j = 0; j < range.columns; ++j) {
        const std::int64_t row = range.row + i;
        const std::int64_t column = range.column + j;
        const Tile::Entry& entry = tile.entries[i][j];
        const double out = load(operands.out, p.types.out, row * p.ld_out + column);
        mine.add(out, entry, bound_ratio(out, entry.value, bound(terms, p.activation, entry), p.types.out), row,
                 column);
        if (truth_out != nullptr) truth_out[row * F + column] = entry.value;
      }
    }
    const std::lock_guard lock(mutex);
    totals.add(mine);
  });
  return summarise(totals, operands.tokens * F);
}

}  // namespace gatefold::cpu
