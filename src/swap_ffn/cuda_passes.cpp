#include "swap_ffn/cuda_passes.hpp"

#include <array>

namespace gatefold::swap_ffn {

std::vector<gatefold_swap_ffn_pass_info> cuda_passes(const Config& c, std::int64_t batch, bool chained) {
  const std::int64_t rows = batch * c.cores;
  const std::int64_t mlps = c.events * c.k_ffn;
  const std::int64_t chains = chained ? c.events : 0;
  const std::int64_t alone = chained ? 0 : mlps;  // MLPs whose products are launches of their own

  // The model counts in doubles: it may be asked about sizes whose bytes overflow.
  const auto B = static_cast<double>(batch);
  const auto D = static_cast<double>(c.hidden_size);
  const auto F = static_cast<double>(c.intermediate_size);
  const auto R = static_cast<double>(c.router_width);
  const auto K = static_cast<double>(c.collapse_heads);
  const auto Rc = static_cast<double>(c.collapse_width);
  const auto size = static_cast<double>(size_of(c.dtype));
  const double T = B * static_cast<double>(c.cores);
  const double tables = static_cast<double>(c.cores) * D * 4.0;
  const double state = T * D * size;
  const double h = T * F * size;
  const double gate_up_bytes = state + 2.0 * F * D * size + 4.0 * T + h;
  const double down_bytes = h + F * D * size + state;

  const auto pass = [](const char* name, std::int64_t times, std::array<std::int64_t, 3> shape, double products,
                       double bytes) {
    const auto repeats = static_cast<double>(times);
    return gatefold_swap_ffn_pass_info{name,           times, shape[0], shape[1], shape[2], 2.0 * products * repeats,
                                       bytes * repeats};
  };
  return {
      pass("start", 1, {rows, c.hidden_size, 0}, 0.0, B * D * size + 2.0 * tables + state),
      pass("router, decide, swap, rms", c.events, {rows, c.router_width, c.hidden_size}, T * R * D,
           R * D * size + 5.0 * state + 4.0 * T),
      pass("MLPs of an event", chains, {rows, c.intermediate_size, c.hidden_size},
           static_cast<double>(c.k_ffn) * T * 3.0 * F * D, static_cast<double>(c.k_ffn) * (gate_up_bytes + down_bytes)),
      pass("gate_up, 1/rms, silu", alone, {rows, 2 * c.intermediate_size, c.hidden_size}, T * 2.0 * F * D,
           gate_up_bytes),
      pass("down: gemm", alone, {rows, c.hidden_size, c.intermediate_size}, T * D * F, down_bytes),
      pass("rms", chained ? 0 : mlps - c.events, {rows, c.hidden_size, 0}, 0.0, state + 4.0 * T),
      pass("pool", 1, {batch * c.collapse_heads, c.hidden_size, c.cores}, T * K * D, state + B * K * D * 4.0),
      pass("collapse: basis, silu", 1, {batch, c.collapse_width, c.collapse_heads * c.hidden_size}, B * Rc * K * D,
           Rc * K * D * size + B * (K * D + Rc) * 4.0),
      pass("collapse: decoder", 1, {batch, c.hidden_size, c.collapse_width}, B * D * Rc,
           D * Rc * size + B * (Rc * 4.0 + D * size))};
}

}  // namespace gatefold::swap_ffn
