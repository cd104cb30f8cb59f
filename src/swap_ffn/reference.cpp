#include "swap_ffn/reference.hpp"

#include <algorithm>
#include <cmath>

#include "core/float16.hpp"
#include "cpu/activation.hpp"
#include "swap_ffn/double_products.hpp"

namespace gatefold::swap_ffn {
namespace {

double silu(double v) { return cpu::activate({ActivationKind::silu}, v); }

// rms(s) * norm
std::vector<double> normalised(const Config& c, const std::vector<double>& s, const std::vector<double>& norm) {
  std::vector<double> n(s.size());
  const std::int64_t D = c.hidden_size;
  for (std::int64_t begin = 0; begin < static_cast<std::int64_t>(s.size()); begin += D) {
    const double scale = inverse_rms(s.data() + begin, D, c.eps);
    for (std::int64_t d = 0; d < D; ++d) n[begin + d] = s[begin + d] * scale * norm[d];
  }
  return n;
}

class Reference {
 public:
  Reference(const Config& config, const Weights& weights, const ReferenceOperands& operands)
      : c_(config),
        w_(weights),
        o_(operands),
        rows_(operands.batch * config.cores),
        router_norm_(to_doubles(weights[router_norm], config.dtype, config.hidden_size)),
        ffn_norm_(to_doubles(weights[ffn_norm], config.dtype, config.hidden_size)),
        tables_(core_tables(config, weights)),
        head_(config, weights) {}

  void run() {
    start();
    for (std::int64_t event = 0; event < c_.events; ++event) {
      route(event);
      for (std::int64_t k = 0; k < c_.k_ffn; ++k) mlp();
    }
    if (o_.cores != nullptr) std::ranges::copy(s_, o_.cores);
    std::ranges::copy(collapse(c_, w_, tables_.alpha, s_.data(), o_.batch).delta, o_.delta);
  }

 private:
  Stored stored(Weight weight) const { return {w_[weight], c_.dtype, tensor_of(c_, weight).shape[0]}; }

  void start() {
    const std::int64_t D = c_.hidden_size;
    s_.resize(static_cast<std::size_t>(rows_ * D));
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t table = row % c_.cores * D;
      for (std::int64_t d = 0; d < D; ++d) {
        s_[row * D + d] =
            load(o_.x, c_.dtype, row / c_.cores * D + d) * tables_.scale[table + d] + tables_.shift[table + d];
      }
    }
  }

  void route(std::int64_t event) {
    const std::int64_t D = c_.hidden_size;
    const DoubleProduct z = multiply(normalised(c_, s_, router_norm_).data(), rows_, stored(router_w), D);
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t at = row * c_.router_width;
      const RouterValues values = head_(z.sum.data() + at, z.magnitude.data() + at);
      std::array<double, banks> logits{};
      for (std::int64_t b = 0; b < banks; ++b) logits[b] = values.logits[b].value;
      const unsigned choice = first_largest(logits);
      const bool swap = values.swap.value > 0.0;
      if (o_.decisions != nullptr) {
        o_.decisions[event * rows_ + row] = static_cast<std::uint8_t>(choice + (swap ? swapped : 0U));
      }
      if (!swap) continue;
      std::uint8_t& map = o_.stream_map[row];
      double* bank = o_.ram + (row * banks + lane(map, choice)) * D;
      std::swap_ranges(bank, bank + D, s_.begin() + row * D);
      map = exchange_lanes(map, choice);
    }
  }

  void mlp() {
    const std::vector<double> n = normalised(c_, s_, ffn_norm_);
    std::vector<double> h = multiply(n.data(), rows_, stored(gate_w), c_.hidden_size).sum;
    const std::vector<double> up = multiply(n.data(), rows_, stored(up_w), c_.hidden_size).sum;
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = silu(h[i]) * up[i];
    s_ = multiply(h.data(), rows_, stored(down_w), c_.intermediate_size).sum;
  }

  const Config& c_;
  const Weights& w_;
  const ReferenceOperands& o_;
  std::int64_t rows_;
  std::vector<double> router_norm_;
  std::vector<double> ffn_norm_;
  CoreTables tables_;
  RouterHead head_;
  std::vector<double> s_;  // [B C, D]
};

void add(Summed& sum, double value, double magnitude) {
  sum.value += value;
  sum.magnitude += magnitude;
}

}  // namespace

void reference(const Config& config, const Weights& weights, const ReferenceOperands& operands) {
  Reference(config, weights, operands).run();
}

RouterHead::RouterHead(const Config& c, const Weights& weights)
    : swap_w_(to_doubles(weights[router_swap_w], c.dtype, c.router_width)),
      swap_b_(to_doubles(weights[router_swap_b], c.dtype, 1)),
      bank_w_(to_doubles(weights[bank_w], c.dtype, c.router_width * banks)),
      bank_b_(to_doubles(weights[bank_b], c.dtype, banks)) {}

RouterValues RouterHead::operator()(const double* z, const double* magnitude) const {
  RouterValues values{};
  values.swap.value = swap_b_[0];
  for (std::int64_t b = 0; b < banks; ++b) values.logits[b].value = bank_b_[b];
  for (std::size_t r = 0; r < swap_w_.size(); ++r) {
    add(values.swap, z[r] * swap_w_[r], magnitude[r] * std::abs(swap_w_[r]));
    for (std::int64_t b = 0; b < banks; ++b) {
      const double w = bank_w_[r * banks + b];
      add(values.logits[b], z[r] * w, magnitude[r] * std::abs(w));
    }
  }
  return values;
}

Collapsed collapse(const Config& c, const Weights& weights, const std::vector<double>& alpha, const double* s,
                   std::int64_t batch) {
  const std::int64_t D = c.hidden_size;
  const std::int64_t K = c.collapse_heads;
  const std::int64_t Rc = c.collapse_width;
  const auto of = [](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count)); };
  Collapsed out{of(batch * K * D), of(batch * Rc), {}, of(batch * K * D), of(batch * Rc), {}};
  for (std::int64_t row = 0; row < batch * c.cores; ++row) {
    for (std::int64_t k = 0; k < K; ++k) {
      const double weight = alpha[row % c.cores * K + k];
      const std::int64_t at = (row / c.cores * K + k) * D;
      for (std::int64_t d = 0; d < D; ++d) {
        out.pooled[at + d] += weight * s[row * D + d];
        out.pooled_magnitude[at + d] += std::abs(weight * s[row * D + d]);
      }
    }
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t k = 0; k < K; ++k) {
      const Stored head{weights[basis] + k * Rc * c.row_bytes(), c.dtype, Rc};
      const DoubleProduct values = multiply(out.pooled.data() + (b * K + k) * D, 1, head, D);
      const DoubleProduct magnitudes = multiply(out.pooled_magnitude.data() + (b * K + k) * D, 1, head, D);
      for (std::int64_t r = 0; r < Rc; ++r) {
        out.q[b * Rc + r] += values.sum[r];
        out.q_magnitude[b * Rc + r] += magnitudes.magnitude[r];
      }
    }
  }
  std::vector<double> activated = out.q;
  for (double& value : activated) value = silu(value);
  DoubleProduct product = multiply(activated.data(), batch, {weights[decoder], c.dtype, D}, Rc);
  out.delta = std::move(product.sum);
  out.delta_magnitude = std::move(product.magnitude);
  return out;
}

}  // namespace gatefold::swap_ffn
