#include "swap_ffn/cpu_passes.hpp"

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"
#include "swap_ffn/cpu_layout.hpp"

namespace gatefold::swap_ffn {

std::vector<gatefold_swap_ffn_pass_info> cpu_passes(const Config& c, std::int64_t batch) {
  const std::int64_t all_rows = batch * c.cores;
  const std::int64_t rows = std::min(block_rows, all_rows);  // of a launch
  const std::int64_t blocks = ceil_div(all_rows, block_rows);
  const std::int64_t mlps = c.events * c.k_ffn;

  // The model counts in doubles: it may be asked about sizes whose bytes overflow.
  const auto B = static_cast<double>(batch);
  const auto D = static_cast<double>(c.hidden_size);
  const auto F = static_cast<double>(c.intermediate_size);
  const auto R = static_cast<double>(c.router_width);
  const auto K = static_cast<double>(c.collapse_heads);
  const auto Rc = static_cast<double>(c.collapse_width);
  const auto size = static_cast<double>(size_of(c.dtype));
  const double T = B * static_cast<double>(c.cores);
  const auto n = static_cast<double>(blocks);  // times that an event's weights are read
  const double state = T * D * size;
  const double wide = T * D * 4.0;
  const double h = T * F * size;

  // products and bytes: of all blocks, once through.
  const auto pass = [blocks](const char* name, std::int64_t times, std::array<std::int64_t, 3> shape, double products,
                             double bytes) {
    const auto repeats = static_cast<double>(times);
    return gatefold_swap_ffn_pass_info{name,     times * blocks,           shape[0],       shape[1],
                                       shape[2], 2.0 * products * repeats, bytes * repeats};
  };
  std::vector<gatefold_swap_ffn_pass_info> all{
      pass("start", 1, {rows, c.hidden_size, 0}, 0.0, B * D * size + 8.0 * T * D + state),
      pass("router: rms, widen", c.events, {rows, c.hidden_size, 0}, 0.0, state + wide),
      pass("router: gemm", c.events, {rows, c.router_width, c.hidden_size}, T * R * D,
           wide + n * R * D * 4.0 + T * R * 4.0),
      pass("decide, swap, rms", c.events, {rows, c.hidden_size, 0}, 0.0, T * R * 4.0 + 4.0 * state),
      pass("rms", mlps - c.events, {rows, c.hidden_size, 0}, 0.0, state + wide),
      pass("gate_up, 1/rms, silu", mlps, {rows, 2 * c.intermediate_size, c.hidden_size}, T * 2.0 * F * D,
           state + n * 2.0 * F * D * size + h),
      pass("down: gemm", mlps, {rows, c.hidden_size, c.intermediate_size}, T * D * F, h + n * F * D * size + state),
      pass("pool", 1, {batch * c.collapse_heads, c.hidden_size, c.cores}, T * K * D, state + wide + B * K * D * 4.0),
      pass("collapse: gemm, silu, gemm", 1, {batch, c.collapse_width, c.collapse_heads * c.hidden_size},
           B * (Rc * K * D + D * Rc), 4.0 * (Rc * K * D + D * Rc + B * (K * D + 2.0 * Rc + 2.0 * D)))};
  all.back().launches = 1;
  return all;
}

}  // namespace gatefold::swap_ffn
