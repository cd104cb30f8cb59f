#include "cpu/loops/tokens.hpp"

#include <algorithm>
#include <cstring>

#include "core/row_stride.hpp"

namespace gatefold::cpu {

Packing Tokens::packing_of(std::int64_t tokens) const {
  return {.x = cut_.packs(tokens, p_.hidden_size),
          .out = packs_h() && p_.op == Op::gate_up && cut_.packs(tokens, p_.intermediate_size)};
}

// Where the spare memory has room for rows of whole lines.
bool Tokens::packs_into_spare() const {
  return p_.has_spare && packs_h() && p_.hidden_size * element() % cache_line_bytes == 0;
}

std::byte* Tokens::packed_place(const Chunk& chunk) const {
  return packs_into_spare() ? chunk.operands.spare : chunk.operands.workspace;
}

// Small ones are for the workspace's sake.
std::int64_t Tokens::chunk(std::int64_t tokens, Packing packing) const {
  return cut_.chunk(tokens, x_is_packed_h() || packs_into_spare() ? Packing{.out = true} : packing);
}

Chunk Tokens::chunk_of(const Whole& whole, std::int64_t first, std::int64_t count) const {
  Operands part = whole.operands;
  part.tokens = count;
  part.x += first * p_.ld_x * element();
  part.out += first * p_.ld_out * element();
  if (p_.op == Op::gemm_gated) part.gate += first * p_.ld_gate * element();
  if (p_.row_scale) part.row_scale += first;
  return {part, whole, first};
}

std::int64_t Tokens::groups(std::int64_t tokens) const { return ceil_div(tokens, kernel_.packed_tokens); }

// Rows whose lines compete for one set of the first-level cache cost up to a fifth of the products' speed.
bool Tokens::copies(std::int64_t tokens) const {
  // Of the remainder: the leading dimension of a single row may be one whose bytes overflow.
  const bool conflict = rows_conflict(p_.ld_x % conflict_bytes * element());
  return kernel_.x_in_place && tokens > 1 && conflict;
}

std::int64_t Tokens::copied_stride() const {
  return spread_stride(round_up(p_.hidden_size * element(), cache_line_bytes));
}

std::int64_t Tokens::size(std::int64_t tokens, Packing packing) const {
  if (!packing.x) return copies(tokens) ? tokens * copied_stride() : 0;
  return x_is_packed_h() || packs_into_spare() ? 0 : groups(tokens) * kernel_.packed_bytes(p_.hidden_size);
}

std::int64_t Tokens::most_size(std::int64_t most, Packing packing) const {
  return size(cut_.most_chunk_of(most, packing), packing);
}

void Tokens::prepare(const Chunk& chunk, const Team& team) const {
  const Operands& operands = chunk.operands;
  const std::int64_t stride = p_.ld_x * element();
  if (chunk.whole.packing.x) {
    if (x_is_packed_h()) return;
    const PackedX packed{packed_place(chunk), groups(operands.tokens), operands.tokens};
    team.take_part(packed.groups, [&](std::int64_t group) {
      const std::int64_t token = group * kernel_.packed_tokens;
      kernel_.pack({.x = operands.x + token * stride,
                    .x_stride = stride,
                    .tokens = std::min(kernel_.packed_tokens, operands.tokens - token),
                    .depth = p_.hidden_size,
                    .packed = packed,
                    .group = group});
    });
  } else if (copies(operands.tokens)) {
    team.take_part(operands.tokens, [&](std::int64_t token) {
      std::memcpy(operands.workspace + token * copied_stride(), operands.x + token * stride,
                  static_cast<std::size_t>(p_.hidden_size * element()));
    });
  } else {
    return;
  }
  team.wait();
}

TokensOfX Tokens::x_from(const Chunk& chunk, std::int64_t token) const {
  const Operands& operands = chunk.operands;
  const bool copied = !chunk.whole.packing.x && copies(operands.tokens);
  TokensOfX x;
  x.stride = copied ? copied_stride() : p_.ld_x * element();
  x.rows = (copied ? operands.workspace : operands.x) + token * x.stride;
  if (!chunk.whole.packing.x) return x;
  if (x_is_packed_h()) {
    const Operands& whole = chunk.whole.operands;
    x.packed = {const_cast<std::byte*>(whole.x), groups(whole.tokens), whole.tokens};  // to be read
    x.group = (chunk.first + token) / kernel_.packed_tokens;
  } else {
    x.packed = {packed_place(chunk), groups(operands.tokens), operands.tokens};
    x.group = token / kernel_.packed_tokens;
  }
  return x;
}

void Tokens::pack_h(const Chunk& chunk, const GroupOfH& h) const {
  const Operands& whole = chunk.whole.operands;
  kernel_.outer.pack_quads({.values = h.values,
                            .quad_stride = h.quad_stride,
                            .tokens = h.tokens,
                            .begin = h.column,
                            .end = h.column + h.columns,
                            .depth = p_.intermediate_size,
                            .packed = {whole.out, groups(whole.tokens), whole.tokens},
                            .group = (chunk.first + h.token) / kernel_.packed_tokens});
}

}  // namespace gatefold::cpu
