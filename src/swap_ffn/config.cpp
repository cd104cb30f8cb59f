#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

gatefold_swap_ffn_tensor tensor_of(const Config& c, Weight weight) {
  const std::int64_t D = c.hidden_size;
  const std::int64_t F = c.intermediate_size;
  const std::int64_t E = c.core_embed_size;
  const std::int64_t R = c.router_width;
  const std::int64_t K = c.collapse_heads;
  const std::int64_t Rc = c.collapse_width;
  switch (weight) {
    case core_embed: return {"core_embed", 2, {c.cores, E, 0}};
    case scale_w: return {"scale_w", 2, {D, E, 0}};
    case scale_b: return {"scale_b", 1, {D, 0, 0}};
    case shift_w: return {"shift_w", 2, {D, E, 0}};
    case shift_b: return {"shift_b", 1, {D, 0, 0}};
    case alpha_w: return {"alpha_w", 2, {K, E, 0}};
    case alpha_b: return {"alpha_b", 1, {K, 0, 0}};
    case router_norm: return {"router_norm", 1, {D, 0, 0}};
    case router_w: return {"router_w", 2, {R, D, 0}};
    case router_swap_w: return {"router_swap_w", 1, {R, 0, 0}};
    case router_swap_b: return {"router_swap_b", 1, {1, 0, 0}};
    case bank_w: return {"bank_w", 2, {R, banks, 0}};
    case bank_b: return {"bank_b", 1, {banks, 0, 0}};
    case ffn_norm: return {"ffn_norm", 1, {D, 0, 0}};
    case gate_w: return {"gate_w", 2, {F, D, 0}};
    case up_w: return {"up_w", 2, {F, D, 0}};
    case down_w: return {"down_w", 2, {D, F, 0}};
    case basis: return {"basis", 3, {K, Rc, D}};
    case decoder: return {"decoder", 2, {D, Rc, 0}};
  }
  return {"?", 0, {0, 0, 0}};
}

}  // namespace gatefold::swap_ffn
