#include "swap_ffn/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/float16.hpp"
#include "cpu/activation.hpp"
#include "cpu/check.hpp"
#include "swap_ffn/double_products.hpp"
#include "swap_ffn/reference.hpp"

// Bounds: those of gatefold_check for each product, carried from one to the next. fp32 factors that are rounded on the
// way (1/rms, the tables, sums stored as fp32) add a few 2^-24 of the value each.
namespace gatefold::swap_ffn {
namespace {

constexpr double u32 = 0x1p-24;

class Checker {
 public:
  Checker(const Config& config, const Weights& weights, const CheckOperands& operands, bool zero_mean)
      : c_(config),
        w_(weights),
        o_(operands),
        zero_mean_(zero_mean),
        rows_(operands.batch * config.cores),
        ram_(operands.ram_before, operands.ram_before + rows_ * banks * config.row_bytes()),
        map_(operands.stream_map_before, operands.stream_map_before + rows_),
        gate_(static_cast<std::size_t>(config.intermediate_size * config.row_bytes())),
        up_(gate_.size()),
        tables_(core_tables(config, weights)),
        head_(config, weights) {
    fold_columns(w_[gate_w], w_[ffn_norm], c_.dtype, c_.intermediate_size, c_.hidden_size, gate_.data());
    fold_columns(w_[up_w], w_[ffn_norm], c_.dtype, c_.intermediate_size, c_.hidden_size, up_.data());
    const std::vector<double> norm = to_doubles(w_[router_norm], c_.dtype, c_.hidden_size);
    router_ = to_doubles(w_[router_w], c_.dtype, c_.router_width * c_.hidden_size);
    for (std::size_t i = 0; i < router_.size(); ++i) router_[i] *= norm[i % norm.size()];
  }

  gatefold_swap_ffn_report run() {
    report_.max_bound_ratio = 0.0;
    check_start();
    for (std::int64_t event = 0; event < c_.events; ++event) {
      s_.assign(slice(event * c_.k_ffn), slice(event * c_.k_ffn + 1));
      check_decisions(event);
      for (std::int64_t k = 0; k < c_.k_ffn; ++k) {
        const std::int64_t next = event * c_.k_ffn + k + 1;
        check_mlp(slice(next));
        s_.assign(slice(next), slice(next + 1));
      }
    }
    check_moves();
    check_delta();
    report_.relative_l2 = square_error_ == 0.0 ? 0.0 : std::sqrt(square_error_ / square_truth_);
    return report_;
  }

 private:
  const std::byte* slice(std::int64_t index) const { return o_.states + index * rows_ * c_.row_bytes(); }

  void hold(double out, double truth, double bound) {
    const double ratio = cpu::bound_ratio(out, truth, bound, c_.dtype);
    if (ratio > 1.0) ++report_.violations;
    report_.max_bound_ratio = std::max(report_.max_bound_ratio, ratio);
    if (std::isfinite(out) && std::isfinite(truth)) report_.max_abs = std::max(report_.max_abs, std::abs(out - truth));
  }

  double rounding(double value) const {
    const double smallest = c_.dtype == DType::fp16 ? 0x1p-25 : 0x1p-126;
    return cpu::rounding_error(c_.dtype) * std::abs(value) + smallest;
  }

  // The tables, the product and the sum are rounded to fp32.
  void check_start() {
    const std::int64_t D = c_.hidden_size;
    for (std::int64_t i = 0; i < rows_ * D; ++i) {
      const std::int64_t table = i / D % c_.cores * D + i % D;
      const double product = load(o_.x, c_.dtype, i / D / c_.cores * D + i % D) * tables_.scale[table];
      const double shift = tables_.shift[table];
      const double truth = product + shift;
      hold(load(o_.states, c_.dtype, i), truth,
           rounding(truth) + u32 * (2.0 * std::abs(product) + std::abs(shift) + std::abs(truth)) + 0x1p-126);
    }
  }

  // Of s_. Then makes the exchange that the step decided on, so that what follows starts from the step's own state.
  void check_decisions(std::int64_t event) {
    const std::int64_t D = c_.hidden_size;
    const std::int64_t R = c_.router_width;
    const std::vector<double> s = to_doubles(s_.data(), c_.dtype, rows_ * D);
    // router_ in double precision; a matrix of another element type than the description's.
    for (std::int64_t row = 0; row < rows_; ++row) {
      const double scale = inverse_rms(s.data() + row * D, D, c_.eps);
      std::vector<double> z(static_cast<std::size_t>(R));
      std::vector<double> error(z.size());
      // The folded weight is rounded once; the sum twice, and 1/rms once.
      const double relative = cpu::sum_error(DType::fp32, D, zero_mean_) + u32;
      for (std::int64_t r = 0; r < R; ++r) {
        double magnitude = 0.0;
        for (std::int64_t d = 0; d < D; ++d) {
          const double product = s[row * D + d] * router_[r * D + d];
          z[r] += product;
          magnitude += std::abs(product);
        }
        z[r] *= scale;
        error[r] = relative * magnitude * scale + 3.0 * u32 * std::abs(z[r]) + 0x1p-126 * scale;
      }
      judge(event, row, head_(z.data(), error.data()));
      exchange(event, row);
    }
  }

  void judge(std::int64_t event, std::int64_t row, const RouterValues& values) {
    const std::uint8_t decision = o_.decisions[event * rows_ + row];
    const bool swap = values.swap.value > 0.0;
    // Sums of R terms in double precision: nothing beside the error of the terms, but the biases' own size counts.
    const double slack = 0x1p-40 * (1.0 + std::abs(values.swap.value));
    const bool margin = !(std::abs(values.swap.value) <= values.swap.magnitude + slack);
    count(margin, swap != ((decision & swapped) != 0));

    std::array<double, banks> logits{};
    for (std::int64_t b = 0; b < banks; ++b) logits[b] = values.logits[b].value;
    const unsigned best = first_largest(logits);
    bool clear = true;
    for (unsigned b = 0; b < banks; ++b) {
      const double error = values.logits[best].magnitude + values.logits[b].magnitude;
      if (b != best && logits[best] - logits[b] <= error + 0x1p-40 * (1.0 + std::abs(logits[best]))) clear = false;
    }
    count(clear, best != (decision & 3U));
    if (decision >= 2 * swapped) ++report_.wrong_decisions;  // no decision at all
  }

  void count(bool decided, bool differs) {
    ++report_.decisions;
    if (!decided) ++report_.undecided;
    if (differs) ++(decided ? report_.wrong_decisions : report_.undecided_against);
  }

  void exchange(std::int64_t event, std::int64_t row) {
    const std::uint8_t decision = o_.decisions[event * rows_ + row];
    if ((decision & swapped) == 0) return;
    const unsigned choice = decision & 3U;
    std::byte* bank = ram_.data() + (row * banks + lane(map_[row], choice)) * c_.row_bytes();
    std::byte* s = s_.data() + row * c_.row_bytes();
    std::swap_ranges(s, s + c_.row_bytes(), bank);
    map_[row] = exchange_lanes(map_[row], choice);
  }

  // One MLP from s_ to `out`, a block of rows at a time: the sums of all rows would fill the memory.
  void check_mlp(const std::byte* out) {
    constexpr std::int64_t block = 512;
    for (std::int64_t first = 0; first < rows_; first += block) {
      check_mlp_rows(out, first, std::min(block, rows_ - first));
    }
  }

  void check_mlp_rows(const std::byte* out, std::int64_t first, std::int64_t rows) {
    const std::int64_t D = c_.hidden_size;
    const std::int64_t F = c_.intermediate_size;
    std::vector<double> n = to_doubles(s_.data() + first * c_.row_bytes(), c_.dtype, rows * D);
    for (std::int64_t row = 0; row < rows; ++row) {
      const double scale = inverse_rms(n.data() + row * D, D, c_.eps);
      for (std::int64_t d = 0; d < D; ++d) n[row * D + d] *= scale;
    }
    const DoubleProduct gate = multiply(n.data(), rows, {gate_.data(), c_.dtype, F}, D);
    const DoubleProduct up = multiply(n.data(), rows, {up_.data(), c_.dtype, F}, D);
    std::vector<double> h(gate.sum.size());
    std::vector<double> error(h.size());
    for (std::size_t i = 0; i < h.size(); ++i) bound_of_h(gate, up, i, h[i], error[i]);

    const DoubleProduct y = multiply(h.data(), rows, {w_[down_w], c_.dtype, D}, F);
    const DoubleProduct carried = multiply(error.data(), rows, {w_[down_w], c_.dtype, D}, F);
    const double gamma = cpu::sum_error(c_.dtype, F, zero_mean_);
    for (std::int64_t i = 0; i < rows * D; ++i) {
      const double value = load(out, c_.dtype, first * D + i);
      const double sums = carried.magnitude[i] + gamma * (y.magnitude[i] + carried.magnitude[i]);
      hold(value, y.sum[i], sums + rounding(std::abs(y.sum[i]) + sums));
      if (std::isfinite(value) && std::isfinite(y.sum[i])) {
        square_error_ += (value - y.sum[i]) * (value - y.sum[i]);
        square_truth_ += y.sum[i] * y.sum[i];
      }
    }
  }

  void bound_of_h(const DoubleProduct& gate, const DoubleProduct& up, std::size_t i, double& h, double& error) const {
    Problem problem;
    problem.op = Op::gate_up;
    problem.types = ElementTypes::all(c_.dtype);
    problem.activation.kind = ActivationKind::silu;
    problem.hidden_size = c_.hidden_size;
    cpu::Tile::Entry entry;
    entry.gate = gate.sum[i];
    entry.up = entry.factor = up.sum[i];
    entry.activated = cpu::activate(problem.activation, entry.gate);
    entry.value = h = entry.activated * entry.factor;
    entry.gate_magnitude = gate.magnitude[i];
    entry.up_magnitude = up.magnitude[i];
    // 1/rms is rounded, and so is its product with each sum.
    const double scaled = 2.0 * u32 * (1.1 * std::abs(entry.gate * entry.up) + std::abs(h));
    error = cpu::element_bound(problem, zero_mean_, entry) + scaled;
  }

  void check_moves() {
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t at = row * banks * c_.row_bytes();
      const bool same =
          std::memcmp(ram_.data() + at, o_.ram + at, static_cast<std::size_t>(banks * c_.row_bytes())) == 0;
      if (!same || map_[row] != o_.stream_map[row]) ++report_.wrong_moves;
    }
  }

  // From the last states as they are stored: pooled, q and delta's sums are fp32, and q's error reaches delta by silu's
  // slope.
  void check_delta() {
    const std::int64_t D = c_.hidden_size;
    const std::int64_t Rc = c_.collapse_width;
    const std::vector<double> s = to_doubles(s_.data(), c_.dtype, rows_ * D);
    const Collapsed truth = collapse(c_, w_, tables_.alpha, s.data(), o_.batch);
    // Each term of pooled: alpha is rounded, the product, and up to C additions, one after the other.
    const double pooling = u32 * static_cast<double>(c_.cores + 2);
    const double summing = cpu::sum_error(DType::fp32, c_.collapse_heads * D, zero_mean_);
    std::vector<double> error(truth.q.size());
    for (std::size_t i = 0; i < error.size(); ++i) {
      const double tail = std::clamp(-truth.q[i], 0.0, 1024.0);
      const double activated = std::abs(cpu::activate({ActivationKind::silu}, truth.q[i]));
      error[i] = 1.1 * (pooling + summing + u32) * truth.q_magnitude[i] +
                 std::max(0x1p-20, 0x1p-23 * tail) * activated + 0x1p-119;
    }
    const DoubleProduct carried = multiply(error.data(), o_.batch, {w_[decoder], c_.dtype, D}, Rc);
    const double gamma = cpu::sum_error(DType::fp32, Rc, zero_mean_) + u32;
    for (std::int64_t i = 0; i < o_.batch * D; ++i) {
      const double sums = carried.magnitude[i] + gamma * (truth.delta_magnitude[i] + carried.magnitude[i]);
      hold(load(o_.delta, c_.dtype, i), truth.delta[i], sums + rounding(std::abs(truth.delta[i]) + sums));
    }
  }

  const Config& c_;
  const Weights& w_;
  const CheckOperands& o_;
  bool zero_mean_;
  std::int64_t rows_;
  std::vector<std::byte> ram_;  // as the step's decisions make it, event by event
  std::vector<std::uint8_t> map_;
  std::vector<std::byte> s_;     // [B C, D], as the step stored it
  std::vector<std::byte> gate_;  // with ffn_norm folded in
  std::vector<std::byte> up_;
  std::vector<double> router_;  // [R, D], with router_norm
  CoreTables tables_;
  RouterHead head_;
  gatefold_swap_ffn_report report_{};
  double square_error_ = 0.0;
  double square_truth_ = 0.0;
};

}  // namespace

gatefold_swap_ffn_report check(const Config& config, const Weights& weights, const CheckOperands& operands,
                               bool zero_mean) {
  return Checker(config, weights, operands, zero_mean).run();
}

}  // namespace gatefold::swap_ffn
