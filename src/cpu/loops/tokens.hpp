#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.hpp"
#include "cpu/loops/cut.hpp"
#include "cpu/threads.hpp"

// How a run's tokens are laid out for its products, in its workspace or as an mlp's h:
//
//   as rows       x where it lies, or copied to rows further apart
//   packed        x in the kernel's order, a chunk of tokens at a time, in the workspace or in the place of an mlp's y
//   h, packed     all tokens in the place of their rows: gate_up leaves it so, gemm reads it so
namespace gatefold::cpu {

struct Whole {
  const Operands& operands;
  Packing packing;
};

// A run's tokens from `first` on, whose x is prepared at a time.
struct Chunk {
  Operands operands;
  const Whole& whole;
  std::int64_t first;
};

// Where x of some of a chunk's tokens is read.
struct TokensOfX {
  const std::byte* rows = nullptr;
  std::int64_t stride = 0;  // bytes
  PackedX packed;
  std::int64_t group = 0;
};

class Tokens {
 public:
  Tokens(const Problem& problem, const Kernel& kernel, const Cut& cut) : p_(problem), kernel_(kernel), cut_(cut) {}

  // Of a run of so many tokens: all of its chunks do alike.
  Packing packing_of(std::int64_t tokens) const;

  Chunk chunk_of(const Whole& whole, std::int64_t first, std::int64_t count) const;

  // Tokens of a chunk.
  std::int64_t chunk(std::int64_t tokens, Packing packing) const;

  // Bytes of the workspace that x of a chunk takes, and of any chunk of up to so many tokens that are packed so.
  std::int64_t size(std::int64_t tokens, Packing packing) const;
  std::int64_t most_size(std::int64_t most, Packing packing) const;

  // By all threads of the team together.
  void prepare(const Chunk& chunk, const Team& team) const;

  // From a chunk's token `token` on, which is the first of a group.
  TokensOfX x_from(const Chunk& chunk, std::int64_t token) const;

  // Values of h, which is packed, as QuadPack has them: `columns` of them from `column` on, of a group that begins with
  // a chunk's token `token`.
  struct GroupOfH {
    const std::byte* values;
    std::int64_t quad_stride;  // bytes
    std::int64_t token;
    std::int64_t tokens;
    std::int64_t column;
    std::int64_t columns;
  };
  void pack_h(const Chunk& chunk, const GroupOfH& h) const;

 private:
  std::int64_t element() const { return size_of(p_.types.x); }
  bool packs_h() const { return p_.own_h && kernel_.outer.from > 0; }
  bool x_is_packed_h() const { return packs_h() && p_.op == Op::gemm; }
  bool packs_into_spare() const;
  std::byte* packed_place(const Chunk& chunk) const;
  std::int64_t groups(std::int64_t tokens) const;
  bool copies(std::int64_t tokens) const;
  std::int64_t copied_stride() const;

  const Problem& p_;
  const Kernel& kernel_;
  const Cut& cut_;
};

}  // namespace gatefold::cpu
