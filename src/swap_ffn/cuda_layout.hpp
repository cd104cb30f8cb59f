#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/sm90/chain.hpp"
#include "swap_ffn/config.hpp"
#include "swap_ffn/placement.hpp"

// Where the step on a GPU keeps things.
namespace gatefold::swap_ffn {

// Offsets in the prepared buffer.
struct CudaPreparedLayout {
  std::size_t gate, up, down, router, basis, decoder;       // of the description's type, as they are stored
  std::size_t core_scale, core_shift, alpha;                // and these of fp32: [C, D], [C, D], [C, K]
  std::size_t router_norm, swap_w, swap_b, bank_w, bank_b;  // [D], [R], [1], [R, 4], [4]
  std::size_t size;

  explicit CudaPreparedLayout(const Config& c) {
    Placement p;
    const auto elements = [&](std::int64_t count) { return p.take(count * size_of(c.dtype)); };
    const auto floats = [&](std::int64_t count) { return p.take(count * 4); };
    gate = elements(c.intermediate_size * c.hidden_size);
    up = elements(c.intermediate_size * c.hidden_size);
    down = elements(c.intermediate_size * c.hidden_size);
    router = elements(c.router_width * c.hidden_size);
    basis = elements(c.collapse_heads * c.collapse_width * c.hidden_size);
    decoder = elements(c.hidden_size * c.collapse_width);
    core_scale = floats(c.cores * c.hidden_size);
    core_shift = floats(c.cores * c.hidden_size);
    alpha = floats(c.cores * c.collapse_heads);
    router_norm = floats(c.hidden_size);
    swap_w = floats(c.router_width);
    swap_b = floats(1);
    bank_w = floats(c.router_width * banks);
    bank_b = floats(banks);
    size = p.size();
  }
};

// Offsets in the workspace. What products need for themselves comes last.
struct CudaWorkspaceLayout {
  std::size_t s, h;         // [B C, D], [B C, F]
  std::size_t inverse_rms;  // fp32: [B C]
  std::size_t pooled, q;    // fp32: [B, K, D], [B, Rc]
  std::size_t counters;     // of a chain (cuda::sm90::ChainState): those of h, then those of s
  std::size_t squares;      // and what its MLPs leave for the next
  std::size_t size;

  CudaWorkspaceLayout(const Config& c, std::int64_t batch) {
    Placement p;
    const std::int64_t rows = batch * c.cores;
    s = p.take(rows * c.row_bytes());
    h = p.take(rows * c.intermediate_size * size_of(c.dtype));
    inverse_rms = p.take(rows * 4);
    pooled = p.take(batch * c.collapse_heads * c.hidden_size * 4);
    q = p.take(batch * c.collapse_width * 4);
    counters = p.take(cuda::sm90::ChainState::counter_bytes());
    squares = p.take(cuda::sm90::ChainState::squares_bytes(rows, c.hidden_size));
    size = p.size();
  }
};

}  // namespace gatefold::swap_ffn
