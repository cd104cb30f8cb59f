#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "swap_ffn/config.hpp"
#include "swap_ffn/placement.hpp"

// Where the CPU's step keeps things.
namespace gatefold::swap_ffn {

// Offsets in the prepared buffer.
struct PreparedLayout {
  std::size_t gate, up, down;                          // of the description's type
  std::size_t core_scale, core_shift, alpha;           // and these of fp32: [C, D], [C, D], [C, K]
  std::size_t router, swap_w, swap_b, bank_w, bank_b;  // [R, D], [R], [1], [R, 4], [4]
  std::size_t basis, decoder;                          // [Rc, K D], [D, Rc]
  std::size_t size;

  explicit PreparedLayout(const Config& c) {
    Placement p;
    const std::int64_t matrix = c.intermediate_size * c.row_bytes();
    const auto floats = [&p](std::int64_t count) { return p.take(count * 4); };
    gate = p.take(matrix);
    up = p.take(matrix);
    down = p.take(matrix);
    core_scale = floats(c.cores * c.hidden_size);
    core_shift = floats(c.cores * c.hidden_size);
    alpha = floats(c.cores * c.collapse_heads);
    router = floats(c.router_width * c.hidden_size);
    swap_w = floats(c.router_width);
    swap_b = floats(1);
    bank_w = floats(c.router_width * banks);
    bank_b = floats(banks);
    basis = floats(c.collapse_width * c.collapse_heads * c.hidden_size);
    decoder = floats(c.hidden_size * c.collapse_width);
    size = p.size();
  }
};

// Rows go through all events in blocks, so that s and h of a block stay in the cache, and h needs no more memory for 64
// sequences than for one.
constexpr std::int64_t block_rows = 512;

// Offsets in the workspace. What products need for themselves comes last.
struct WorkspaceLayout {
  std::size_t s, h;                       // [rows, D], [rows, F]
  std::size_t wide, inverse_rms, routes;  // fp32: [rows, D], [rows], [rows, R]
  std::size_t pooled, q, delta;           // fp32: [B, K, D], [B, Rc], [B, D]
  std::size_t size;

  WorkspaceLayout(const Config& c, std::int64_t batch) {
    Placement p;
    const std::int64_t rows = std::min(block_rows, batch * c.cores);
    s = p.take(rows * c.row_bytes());
    h = p.take(rows * c.intermediate_size * size_of(c.dtype));
    wide = p.take(rows * c.hidden_size * 4);
    inverse_rms = p.take(rows * 4);
    routes = p.take(rows * c.router_width * 4);
    pooled = p.take(batch * c.collapse_heads * c.hidden_size * 4);
    q = p.take(batch * c.collapse_width * 4);
    delta = p.take(batch * c.hidden_size * 4);
    size = p.size();
  }
};

}  // namespace gatefold::swap_ffn
