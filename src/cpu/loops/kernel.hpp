#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

// The products of a panel: some rows of weights with some rows of x. One kernel for each element type and instruction
// set; what they have in common is the template of nest.hpp.
namespace gatefold::cpu {

// Rows of weights whose sums lie side by side.
constexpr std::int64_t tile_rows_of_weights = 4;

// A panel's rows are multiplied together: of gate_up half of them are gate's, half up's.
constexpr std::int64_t most_halves = 2;    // whose sums an item holds
constexpr std::int64_t most_rows = 128;    // of a panel
constexpr std::int64_t most_sums = 69632;  // of both halves; 272 KiB stay in the second-level cache

// Tokens of a group of outer products (OuterProducts).
constexpr std::int64_t outer_group = 6;

// x as a kernel packs it: blocks of k, each with all groups of tokens one after the other, so that the tokens of a
// panel lie together in every block.
struct PackedX {
  std::byte* base = nullptr;  // aligned to 64, by outer products in any way
  std::int64_t groups = 0;    // all that are packed together
  std::int64_t tokens = 0;
};

// How rows that come from memory are asked for ahead of their use (ahead.hpp).
enum class Fetch : std::uint8_t { to_first_level, to_second_level, at_a_pace };

struct PanelProduct {
  const std::byte* const* rows = nullptr;  // of weights: row_count pointers, a multiple of the kernel's tile_rows
  std::int64_t row_count = 0;
  const std::byte* const* next_rows = nullptr;  // as many, which come after these and may be fetched; null: none
  Fetch fetch = Fetch::to_first_level;
  bool widens = false;  // 16-bit weights are brought into fp32 first; sums are the same
  const std::byte* x = nullptr;
  std::int64_t x_stride = 0;  // bytes from one token to the next
  PackedX packed;             // x in place of the two above, if it has groups
  std::int64_t group = 0;     // the first token's, in `packed`
  std::int64_t tokens = 0;
  std::int64_t depth = 0;  // elements of a row, > 0

  // Out: sums[row / 4][token][row % 4]. Each is the same whatever rows, tokens and threads there are beside it.
  float* sums = nullptr;
  std::byte* scratch = nullptr;  // scratch_for these rows, aligned to 64
};

// x of one group, up to a kernel's packed_tokens, and where it is packed to.
struct TokenPack {
  const std::byte* x = nullptr;  // of the first token
  std::int64_t x_stride = 0;
  std::int64_t tokens = 0;
  std::int64_t depth = 0;
  PackedX packed;
  std::int64_t group = 0;
};

// The same of values that lie as a panel's sums do, [quad][token][4], rounded where they are: elements [begin, end) of
// a group's tokens.
struct QuadPack {
  const std::byte* values = nullptr;  // of the first token, from element `begin` on
  std::int64_t quad_stride = 0;       // bytes from four elements to the next four
  std::int64_t tokens = 0;
  std::int64_t begin = 0;  // a multiple of OuterProducts::columns
  std::int64_t end = 0;
  std::int64_t depth = 0;
  PackedX packed;
  std::int64_t group = 0;
};

// Outer products of packed operands (avx512_outer.hpp), which some kernels change to for many tokens. Sums have the
// same bits.
struct OuterProducts {
  std::int64_t from = 0;     // tokens; 0: the kernel has none
  std::int64_t terms = 0;    // of a sum, or more
  std::int64_t rows = 0;     // of weights, packed together
  std::int64_t columns = 0;  // quads may be packed so many elements at a time
  std::int64_t scratch_bytes = 0;
  void (*pack_quads)(const QuadPack& quads) = nullptr;
};

struct Kernel {
  const char* name;  // of the instruction set
  DType dtype;
  std::int64_t tile_rows;
  std::int64_t tile_tokens;
  std::int64_t scratch_bytes;
  void (*multiply)(const PanelProduct& product);
  bool x_in_place = false;       // x is read again and again where it lies, not brought into the scratch first
  std::int64_t block_bytes = 0;  // of a row, which are multiplied with all tokens before the next; 0: the kernel's own
  std::int64_t streamed_tokens = 0;  // up to so many read each row once, from one end to the other (streams.hpp)

  // From so many tokens on a panel's weights are brought into fp32 first, block by block, where a core's second-level
  // cache holds as many bytes; 0 tokens: never.
  std::int64_t widened_from = 0;
  std::int64_t widened_cache = 0;
  std::int64_t widened_rows = 0;       // whose blocks are 256 KiB then
  std::int64_t widened_row_bytes = 0;  // of the scratch, behind scratch_bytes

  constexpr std::int64_t scratch_for(bool widens, std::int64_t rows) const {
    return scratch_bytes + (widens ? rows * widened_row_bytes : 0);
  }

  // Up to so many tokens the next kernel of the list is faster, whose sums have other bits.
  std::int64_t few_tokens = 0;

  // Where x is packed before it is multiplied: in groups of so many tokens, each of packed_bytes(depth). For outer
  // products tokens take as many bytes as rows of whole lines, and those of the last group have no gaps between them.
  std::int64_t packed_tokens = 0;  // 0: x is read as it is
  std::int64_t (*packed_bytes)(std::int64_t depth) = nullptr;
  void (*pack)(const TokenPack& tokens) = nullptr;
  OuterProducts outer{};
};

// Those that this machine can run with the element type, fastest first. The last needs nothing of the machine.
const std::vector<const Kernel*>& kernels_for(DType dtype);

// A list without functions of its own: the sources that hold kernels are compiled for one instruction set each.
struct KernelList {
  const Kernel* first = nullptr;
  int count = 0;
};
KernelList portable_kernels();
KernelList neon_kernels();
KernelList avx2_kernels();
KernelList avx512_kernels();
KernelList avx512_bf16_kernels();
KernelList amx_bf16_kernels();
KernelList amx_parts_kernels();

}  // namespace gatefold::cpu
