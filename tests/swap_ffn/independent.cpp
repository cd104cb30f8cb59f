#include "swap_ffn/independent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gatefold::test {
namespace {

double silu(double v) { return v / (1.0 + std::exp(-v)); }

std::vector<double> initial_ram(const SwapFfnExperiment& e) {
  std::vector<double> ram(static_cast<std::size_t>(e.rows() * 4 * e.desc().hidden_size));
  for (std::size_t i = 0; i < ram.size(); ++i) ram[i] = e.element(e.ram, static_cast<std::int64_t>(i));
  return ram;
}

// core_embed[core] . w[row]
double embedded(const SwapFfnExperiment& e, const char* w, std::int64_t row, std::int64_t core) {
  const std::int64_t E = e.desc().core_embed_size;
  double sum = 0.0;
  for (std::int64_t i = 0; i < E; ++i) sum += e.get("core_embed", core * E + i) * e.get(w, row * E + i);
  return sum;
}

}  // namespace

IndependentStep::IndependentStep(const SwapFfnExperiment& e, std::int64_t batch)
    : ram(initial_ram(e)),
      s(static_cast<std::size_t>(e.rows() * e.desc().hidden_size)),
      delta(static_cast<std::size_t>(batch * e.desc().hidden_size)),
      map(static_cast<std::size_t>(e.rows()), 0b11100100),
      decisions(static_cast<std::size_t>(e.desc().events * e.rows())),
      batch_(batch) {}

std::vector<double> IndependentStep::normalised(const SwapFfnExperiment& e, std::int64_t row, const char* norm) const {
  const std::int64_t D = e.desc().hidden_size;
  double square = 0.0;
  for (std::int64_t d = D; d-- > 0;) square += s[row * D + d] * s[row * D + d];
  std::vector<double> n(static_cast<std::size_t>(D));
  for (std::int64_t d = 0; d < D; ++d) {
    n[d] = s[row * D + d] / std::sqrt(square / static_cast<double>(D) + e.desc().eps) * e.get(norm, d);
  }
  return n;
}

void IndependentStep::route(const SwapFfnExperiment& e, std::int64_t event, std::int64_t row) {
  const std::int64_t D = e.desc().hidden_size;
  const std::vector<double> n = normalised(e, row, "router_norm");
  double swap = 0.0;
  double logits[4] = {};
  for (std::int64_t r = 0; r < e.desc().router_width; ++r) {
    double z = 0.0;
    for (std::int64_t d = D; d-- > 0;) z += n[d] * e.get("router_w", r * D + d);
    swap += z * e.get("router_swap_w", r);
    for (int b = 0; b < 4; ++b) logits[b] += z * e.get("bank_w", r * 4 + b);
  }
  int choice = 0;
  for (int b = 0; b < 4; ++b) logits[b] += e.get("bank_b", b);
  for (int b = 1; b < 4; ++b) choice = logits[b] > logits[choice] ? b : choice;
  const bool swaps = 1.0 / (1.0 + std::exp(-(swap + e.get("router_swap_b", 0)))) > 0.5;
  decisions[event * e.rows() + row] = static_cast<std::uint8_t>(choice + (swaps ? 4 : 0));
  if (!swaps) return;
  int lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = map[row] >> (2 * i) & 3;
  for (std::int64_t d = 0; d < D; ++d) std::swap(s[row * D + d], ram[(row * 4 + lanes[choice]) * D + d]);
  std::swap(lanes[0], lanes[choice]);
  map[row] = static_cast<std::uint8_t>(lanes[0] | lanes[1] << 2 | lanes[2] << 4 | lanes[3] << 6);
}

void IndependentStep::mlp(const SwapFfnExperiment& e, std::int64_t row) {
  const std::int64_t D = e.desc().hidden_size;
  const std::int64_t F = e.desc().intermediate_size;
  const std::vector<double> n = normalised(e, row, "ffn_norm");
  std::vector<double> y(static_cast<std::size_t>(D), 0.0);
  for (std::int64_t f = 0; f < F; ++f) {
    double gate = 0.0;
    double up = 0.0;
    for (std::int64_t d = 0; d < D; ++d) gate += n[d] * e.get("gate_w", f * D + d);
    for (std::int64_t d = 0; d < D; ++d) up += n[d] * e.get("up_w", f * D + d);
    for (std::int64_t d = 0; d < D; ++d) y[d] += silu(gate) * up * e.get("down_w", d * F + f);
  }
  std::ranges::copy(y, s.begin() + row * D);
}

void IndependentStep::collapse(const SwapFfnExperiment& e) {
  const SwapFfnDesc& c = e.desc();
  const std::int64_t D = c.hidden_size;
  std::vector<double> alpha(static_cast<std::size_t>(c.cores * c.collapse_heads));
  for (std::int64_t core = 0; core < c.cores; ++core) {
    double sum = 0.0;
    for (std::int64_t k = 0; k < c.collapse_heads; ++k) {
      alpha[core * c.collapse_heads + k] = std::exp(embedded(e, "alpha_w", k, core) + e.get("alpha_b", k));
      sum += alpha[core * c.collapse_heads + k];
    }
    for (std::int64_t k = 0; k < c.collapse_heads; ++k) alpha[core * c.collapse_heads + k] /= sum;
  }
  std::ranges::fill(delta, 0.0);
  for (std::int64_t b = 0; b < batch_; ++b) {
    for (std::int64_t r = 0; r < c.collapse_width; ++r) {
      double q = 0.0;
      for (std::int64_t k = 0; k < c.collapse_heads; ++k) {
        for (std::int64_t d = 0; d < D; ++d) {
          double pooled = 0.0;
          for (std::int64_t core = 0; core < c.cores; ++core) {
            pooled += alpha[core * c.collapse_heads + k] * s[(b * c.cores + core) * D + d];
          }
          q += e.get("basis", (k * c.collapse_width + r) * D + d) * pooled;
        }
      }
      for (std::int64_t d = 0; d < D; ++d) delta[b * D + d] += silu(q) * e.get("decoder", d * c.collapse_width + r);
    }
  }
}

void IndependentStep::step(const SwapFfnExperiment& e) {
  const std::int64_t D = e.desc().hidden_size;
  for (std::int64_t row = 0; row < e.rows(); ++row) {
    const std::int64_t core = row % e.desc().cores;
    for (std::int64_t d = 0; d < D; ++d) {
      const double scale = embedded(e, "scale_w", d, core) + e.get("scale_b", d) + 1.0;
      const double shift = embedded(e, "shift_w", d, core) + e.get("shift_b", d);
      s[row * D + d] = e.element(e.x, row / e.desc().cores * D + d) * scale + shift;
    }
    for (std::int64_t event = 0; event < e.desc().events; ++event) {
      route(e, event, row);
      for (std::int64_t k = 0; k < e.desc().k_ffn; ++k) mlp(e, row);
    }
  }
  collapse(e);
}

LibraryReference::LibraryReference(const SwapFfnExperiment& e, std::int64_t batch)
    : ram(initial_ram(e)),
      cores(static_cast<std::size_t>(e.rows() * e.desc().hidden_size)),
      delta(static_cast<std::size_t>(batch * e.desc().hidden_size)),
      map(static_cast<std::size_t>(e.rows()), 0b11100100),
      decisions(static_cast<std::size_t>(e.desc().events * e.rows())),
      batch_(batch) {}

void LibraryReference::step(const SwapFfnExperiment& e) {
  const gatefold_swap_ffn_desc desc = e.desc().c_desc();
  const gatefold_swap_ffn_weights weights = e.weights();
  gatefold_swap_ffn_reference_args args{};
  args.struct_size = sizeof args;
  args.batch = batch_;
  args.x = e.x.data();
  args.ram = ram.data();
  args.stream_map = map.data();
  args.delta = delta.data();
  args.cores = cores.data();
  args.decisions = decisions.data();
  throw_on_error(gatefold_swap_ffn_reference(&desc, &weights, &args));
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0.0;
  double difference = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::isnan(b[i]) ? INFINITY : std::max(difference, std::abs(a[i] - b[i]));
  }
  EXPECT_LE(difference, 0x1p-30 * largest);
}

}  // namespace gatefold::test
