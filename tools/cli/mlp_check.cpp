#include "cli/mlp_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cli/element.hpp"

namespace gatefold::cli {
namespace {

// docs/numerics.md's constants of an element type.
struct Format {
  double rounding;
  double floor;
  double largest;  // finite number
};

Format format_of(gatefold_dtype dtype) {
  if (dtype == GATEFOLD_DTYPE_FP16) return {0x1p-11, 0x1p-25, 65504.0};
  if (dtype == GATEFOLD_DTYPE_BF16) return {0x1p-8, 0x1p-126, 0x1.fep127};
  return {0x1p-24, 0x1p-126, std::numeric_limits<float>::max()};
}

double gamma(gatefold_dtype dtype, gatefold_data data, std::int64_t length) {
  const auto n = static_cast<double>(length);
  const double ceiling = n * 0x1p-24;
  const bool any = data == GATEFOLD_DATA_ANY;
  if (dtype == GATEFOLD_DTYPE_FP32) return (any ? ceiling : std::min(std::sqrt(n) * 0x1p-24, ceiling)) + 0x1p-21;
  return any ? ceiling : std::min(std::sqrt(std::max(n, 64.0)) * 0x1p-26, ceiling);
}

struct Sum {
  double value = 0.0;
  double magnitude = 0.0;
};

// A value, and how far from it a computed one may be.
struct Bounded {
  double value;
  double bound;
};

Sum dot(const double* a, const double* b, std::int64_t length) {
  double value = 0.0;
  double magnitude = 0.0;
#pragma omp simd reduction(+ : value, magnitude)
  for (std::int64_t k = 0; k < length; ++k) {
    const double product = a[k] * b[k];
    value += product;
    magnitude += std::abs(product);
  }
  return {value, magnitude};
}

double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

// Of an activation: its value, the largest slope, how far off it may be relative to itself, and to the gate.
struct Activated {
  double value;
  double slope;
  double relative;
  double of_gate;
};

Activated activate(const Activation& activation, double g) {
  constexpr double least = 0x1p-20;
  constexpr double root = 1.5957691216057308;  // 2 sqrt(2/pi)
  switch (activation.kind) {
    case GATEFOLD_ACTIVATION_SILU: return {g * sigmoid(g), 1.1, std::max(least, -g * 0x1p-23), 0.0};
    case GATEFOLD_ACTIVATION_GELU_TANH: {
      const double z = root * (g + 0.044715 * g * g * g);
      return {g * sigmoid(z), 1.13, std::max(least, -z * 0x1p-21), 0x1p-22};
    }
    case GATEFOLD_ACTIVATION_GELU_ERF:
      return {0.5 * g * std::erfc(-g * std::sqrt(0.5)), 1.13, std::max(least, g < 0.0 ? g * g * 0x1p-22 : 0.0),
              0x1p-22};
    case GATEFOLD_ACTIVATION_RELU: return {g < 0.0 ? 0.0 : g, 1.0, least, 0.0};
    case GATEFOLD_ACTIVATION_SIGMOID: return {sigmoid(g), 0.25, std::max(least, -g * 0x1p-23), 0.0};
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: {
      const double low = g > activation.limit ? activation.limit : g;
      const double z = activation.alpha * low;
      return {low * sigmoid(z), 1.1, std::max(least, -z * 0x1p-23), 0.0};
    }
    case GATEFOLD_ACTIVATION_IDENTITY: break;
  }
  return {g, 1.0, least, 0.0};
}

Bounded gated(const Activation& activation, const Format& format, double gamma_d, const Sum& gate, const Sum& up) {
  const Activated act = activate(activation, gate.value);
  double factor = up.value;
  if (activation.kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) {
    factor = std::clamp<double>(up.value, -activation.limit, activation.limit) + activation.beta;
  }
  const double h = act.value * factor;
  double bound = (format.rounding + act.relative) * std::abs(h);
  bound += gamma_d * (act.slope * gate.magnitude * std::abs(factor) + up.magnitude * std::abs(act.value));
  bound += act.of_gate * std::abs(gate.value) * std::abs(factor);
  bound += 0x1p-119 * std::abs(factor) + 0x1p-126 * std::abs(act.value) + format.floor;
  return {h, bound};
}

// |computed - truth| / bound. Beyond the type's range an infinity is right, and what is not a number must be none.
double ratio_of(double computed, const Bounded& truth, double largest) {
  if (std::isnan(truth.value)) return std::isnan(computed) ? 0.0 : std::numeric_limits<double>::infinity();
  const bool same_sign = std::signbit(computed) == std::signbit(truth.value);
  const bool may_overflow = !(std::abs(truth.value) + truth.bound < largest);
  if (std::isinf(computed) && same_sign && may_overflow) return 0.0;
  const double ratio = std::abs(computed - truth.value) / truth.bound;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

template <class Element>
class MlpCheck {
 public:
  MlpCheck(const Block& block, const Tensors& host, const RowSample& rows, gatefold_data data)
      : block_(block),
        host_(host),
        rows_(rows),
        format_(format_of(block.dtype)),
        gamma_d_(gamma(block.dtype, data, block.hidden_size)),
        gamma_f_(gamma(block.dtype, GATEFOLD_DATA_ANY, block.intermediate_size)) {}

  gatefold_error_report run() {
    find_h();
    find_y();
    return compare();
  }

 private:
  using Row = std::vector<double>;

  static void decode(const std::byte* tensor, std::int64_t row, Row& to) {
    const auto* from =
        reinterpret_cast<const typename Element::Stored*>(tensor) + row * static_cast<std::int64_t>(to.size());
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = Element::load(from[k]);
  }

  static std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }

  // Element `row` of a vector as long as a weight has rows; 0 where there is none.
  static double bias(const std::byte* vector, std::int64_t row) {
    if (vector == nullptr) return 0.0;
    return Element::load(reinterpret_cast<const typename Element::Stored*>(vector)[row]);
  }

  static Sum with_bias(Sum sum, double bias) { return {sum.value + bias, sum.magnitude + std::abs(bias)}; }

  void find_h() {
    const std::int64_t D = block_.hidden_size;
    const std::int64_t F = block_.intermediate_size;
    std::vector<Row> x(size(rows_.count), Row(size(D)));
    for (std::int64_t r = 0; r < rows_.count; ++r) decode(host_.x, rows_.first + r * rows_.stride, x[size(r)]);
    h_.assign(size(rows_.count), Row(size(F)));
    h_bound_ = h_;
    const std::byte* up_from = block_.layout.packed() ? host_.w_gate : host_.w_up;
    const std::byte* up_bias_from = block_.layout.packed() ? host_.b_gate : host_.b_up;
#pragma omp parallel
    {
      Row gate(size(D));
      Row up(size(D));
#pragma omp for
      for (std::int64_t f = 0; f < F; ++f) {
        decode(host_.w_gate, weight_row(block_, false, f), gate);
        decode(up_from, weight_row(block_, true, f), up);
        const double gate_bias = bias(host_.b_gate, weight_row(block_, false, f));
        const double up_bias = bias(up_bias_from, weight_row(block_, true, f));
        for (std::size_t r = 0; r < x.size(); ++r) {
          const Bounded h =
              gated(block_.activation, format_, gamma_d_, with_bias(dot(x[r].data(), gate.data(), D), gate_bias),
                    with_bias(dot(x[r].data(), up.data(), D), up_bias));
          h_[r][size(f)] = h.value;
          h_bound_[r][size(f)] = h.bound;
        }
      }
    }
  }

  void find_y() {
    const std::int64_t F = block_.intermediate_size;
    y_.assign(size(rows_.count), std::vector<Bounded>(size(block_.hidden_size)));
#pragma omp parallel
    {
      Row down(size(F));
#pragma omp for
      for (std::int64_t d = 0; d < block_.hidden_size; ++d) {
        decode(host_.w_down, d, down);
        for (std::size_t r = 0; r < h_.size(); ++r) {
          const Sum y = with_bias(dot(h_[r].data(), down.data(), F), bias(host_.b_down, d));
          const double carried = dot(h_bound_[r].data(), down.data(), F).magnitude;
          const double before_rounding = carried + gamma_f_ * (y.magnitude + carried);
          const double rounding = format_.rounding * (std::abs(y.value) + before_rounding);
          y_[r][size(d)] = {y.value, before_rounding + rounding + format_.floor};
        }
      }
    }
  }

  // Stored as infinity, an h beyond the type's range makes infinities or NaN of all y of its row.
  bool may_overflow(std::size_t row) const {
    for (std::size_t f = 0; f < h_[row].size(); ++f) {
      if (!(std::abs(h_[row][f]) + h_bound_[row][f] < format_.largest)) return true;
    }
    return false;
  }

  gatefold_error_report compare() const {
    gatefold_error_report report{};
    double errors = 0.0;
    double squares = 0.0;
    double truths = 0.0;
    Row computed(size(block_.hidden_size));
    for (std::size_t r = 0; r < y_.size(); ++r) {
      const auto row = static_cast<std::int64_t>(r);
      const bool h_overflows = may_overflow(r);
      decode(host_.y, rows_.first + row * rows_.stride, computed);
      for (std::size_t d = 0; d < computed.size(); ++d) {
        const Bounded& truth = y_[r][d];
        if (h_overflows && !std::isfinite(computed[d])) continue;
        const double error = std::abs(computed[d] - truth.value);
        const double ratio = ratio_of(computed[d], truth, format_.largest);
        errors += error;
        squares += error * error;
        truths += truth.value * truth.value;
        report.max_abs = std::max(report.max_abs, error);
        if (ratio > 1.0) ++report.violations;
        if (!(ratio > report.max_bound_ratio)) continue;
        report.max_bound_ratio = ratio;
        report.worst_row = row;
        report.worst_column = static_cast<std::int64_t>(d);
      }
    }
    const auto count = static_cast<double>(rows_.count * block_.hidden_size);
    report.mean_abs = count == 0.0 ? 0.0 : errors / count;
    report.relative_l2 = squares == 0.0 ? 0.0 : std::sqrt(squares / truths);
    return report;
  }

  const Block& block_;
  const Tensors& host_;
  RowSample rows_;
  Format format_;
  double gamma_d_;
  double gamma_f_;  // h is not zero-mean: most activations have a sign
  std::vector<Row> h_, h_bound_;
  std::vector<std::vector<Bounded>> y_;
};

}  // namespace

gatefold_error_report check_mlp(const Block& block, const Tensors& host, const RowSample& rows, gatefold_data data) {
  return with_element(block.dtype,
                      [&](auto element) { return MlpCheck<decltype(element)>(block, host, rows, data).run(); });
}

}  // namespace gatefold::cli
