#include "cpu/loops/amx_pack.hpp"

// bf16 by the matrix unit (AMX): a tile register holds 16 rows of 64 bytes, and one instruction adds the products of 16
// rows of weights with 16 tokens, 32 elements deep, to 16 x 16 sums.
//
//   for each run of k                              few tokens: 1024 or 2048 elements; many: one block of 256
//     for each 32 rows of weights                  from memory where they lie; for many tokens, or where 16 rows are
//                                                  not evenly spaced, copied first: 18 KiB of the first-level cache
//       for each 32 tokens                         x as amx_pack.hpp packs it, from the second-level cache
//         2 x 2 tiles of sums                      they wait in the scratch, unfolded, from one run to the next
//
// Rows of weights lie a power of two apart as a rule, so that 32 of them meet in one set of the first-level cache, and
// each is read again for every 32 tokens: hence the copy. With many tokens the next rows and the next block of x are
// brought to the second-level cache meanwhile; with few the processor's own prefetching does better.
//
// Each sum is formed over k from the first pair to the last, whatever runs there are: its bits depend on nothing but
// its row and its token. Products are rounded to nearest even; subnormal factors count as 0.
namespace gatefold::cpu {
namespace {

using Bits = std::uint16_t;

// A step's elements, of which `left` are there.
GATEFOLD_LOOP __m512i load_elements(const Bits* from, std::int64_t left) {
  return _mm512_maskz_loadu_epi16(left < step ? (std::uint32_t{1} << left) - 1U : ~std::uint32_t{0}, from);
}

// As they are stored.
struct Whole {
  using Element = Bits;
  static constexpr int parts = 1;
  static constexpr std::int64_t block = 256;  // elements: 8 KiB of x for 16 tokens, 16 KiB of 32 rows

  static GATEFOLD_LOOP void split(const Bits* from, std::int64_t left, __m512i (&out)[1]) {
    out[0] = load_elements(from, left);
  }
};
constexpr std::int64_t block = Whole::block;

// From so many tokens on rows are copied; measured (docs/kernels/cpu_log.md).
constexpr std::int64_t many_tokens = 96;

// Bytes of x that stay in the second-level cache beside the sums, and needn't be fetched.
constexpr std::int64_t x_in_cache = std::int64_t{1} << 20;

// Elements of a run.
constexpr std::int64_t run_of_one_group = 2048;
constexpr std::int64_t run_of_few = 1024;

std::int64_t run_for(std::int64_t tokens) {
  return tokens > many_tokens ? block : tokens > side ? run_of_few : run_of_one_group;
}

// A line more than the run, so that 16 rows are in different sets of the cache.
constexpr std::int64_t copy_stride(std::int64_t run) { return run * 2 + line; }

// The scratch: copied weights, then the sums.
constexpr std::int64_t copy_bytes = tile_rows * copy_stride(run_of_one_group);
constexpr std::int64_t scratch_bytes = copy_bytes + waiting_sums * 4;

// 16 rows of weights in a run.
struct RowGroup {
  const std::byte* first;
  std::int64_t stride;  // bytes
};

// Lines that are brought to the second-level cache while tiles are worked on, so many at each step.
struct Ahead {
  const std::byte* const* rows = nullptr;  // the next 32 rows of weights
  std::int64_t offset = 0;                 // in a row
  std::int64_t next = 0;                   // of their lines
  std::int64_t count = 0;
  const std::byte* x = nullptr;  // the next block's
  std::int64_t x_count = 0;
};

// What a tile works on: two groups of rows in a run, one or two groups of tokens.
struct Tiles {
  const PanelProduct& panel;
  const RowGroup* rows;
  std::int64_t token_group;
  std::int64_t begin;
  std::int64_t count;
  float* sums;  // [token group][row group][16 x 16]
};

// The stride of 16 rows, if they are evenly spaced.
bool evenly_spaced(const std::byte* const* rows, std::int64_t& stride) {
  stride = rows[1] - rows[0];
  for (std::int64_t r = 2; r < side; ++r) {
    if (rows[r] - rows[r - 1] != stride) return false;
  }
  return true;
}

// `count` elements of 16 rows one after the other, up to a whole step filled with zeros.
void copy_rows(const std::byte* const* rows, std::int64_t begin, std::int64_t count, std::byte* out,
               std::int64_t stride) {
  for (std::int64_t r = 0; r < side; ++r) {
    const auto* from = reinterpret_cast<const Bits*>(rows[r]) + begin;
    for (std::int64_t k = 0; k < count; k += step) {
      _mm512_store_si512(out + r * stride + k * 2, load_elements(from + k, count - k));
    }
  }
}

GATEFOLD_LOOP void fetch(Ahead& ahead) {
  constexpr std::int64_t lines = block * 2 / line;  // of a row in a block
  for (std::int64_t i = 0; i < ahead.count; ++i, ++ahead.next) {
    __builtin_prefetch(ahead.rows[ahead.next / lines] + ahead.offset + ahead.next % lines * line, 0, 2);
  }
  for (std::int64_t i = 0; i < ahead.x_count; ++i, ahead.x += line) __builtin_prefetch(ahead.x, 0, 2);
}

// The steps of one block from `offset` bytes on.
template <bool two_tokens>
GATEFOLD_LOOP void multiply_steps(const RowGroup* rows, std::int64_t offset, const std::byte* x, std::int64_t steps,
                                  Ahead& ahead) {
  const RowGroup a = rows[0];
  const RowGroup b = rows[1];
  for (std::int64_t s = 0; s < steps; ++s) {
    _tile_loadd(4, a.first + offset + s * 64, a.stride);
    _tile_loadd(6, x + s * tile_bytes, 64);
    _tile_loadd(5, b.first + offset + s * 64, b.stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (two_tokens) _tile_loadd(7, x + (steps + s) * tile_bytes, 64);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (two_tokens) {
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    fetch(ahead);
  }
}

template <bool two_tokens>
void multiply_tiles(const Tiles& t, Ahead& ahead) {
  t.begin == 0 ? zero_sums<two_tokens>() : load_sums<two_tokens>(t.sums);
  const PanelProduct& p = t.panel;
  for (std::int64_t k = t.begin; k < t.begin + t.count; k += block) {
    const std::byte* x = packed_at<Whole>(p.packed, k, p.group + t.token_group, p.depth);
    multiply_steps<two_tokens>(t.rows, (k - t.begin) * 2, x, steps_from<Whole>(k, p.depth), ahead);
  }
  store_sums<two_tokens>(t.sums);
}

// 32 rows at such a distance have room for few in the first-level cache at a time: 64 sets of 12 lines.
constexpr bool meet_in_cache(std::int64_t stride) { return stride % 2048 == 0; }

// Where 16 rows of weights are in a run: where they lie, or copied to `copy`.
RowGroup find_group(const std::byte* const* rows, std::int64_t begin, std::int64_t count, bool many, std::byte* copy) {
  std::int64_t stride = 0;
  if (count % step == 0 && evenly_spaced(rows, stride) && !(many && meet_in_cache(stride))) {
    return {rows[0] + begin * 2, stride};
  }
  stride = copy_stride(steps_of(count) * step);
  copy_rows(rows, begin, count, copy, stride);
  return {copy, stride};
}

// What the tiles of `row` in a run fetch for those after them.
Ahead ahead_of(const PanelProduct& p, std::int64_t row, std::int64_t begin) {
  const bool last = row + tile_rows == p.row_count;
  const std::int64_t next = begin + block;
  if (next >= p.depth) return {};
  const std::int64_t row_pairs = p.row_count / tile_rows;
  const std::int64_t token_pairs = (groups_of(p.tokens) + 1) / 2;
  // Of two groups at a step, to be shared out among the rows.
  const std::int64_t x_lines = p.tokens * p.depth * 2 > x_in_cache ? 2 * tile_bytes / line : 0;
  Ahead ahead{.rows = p.rows + (last ? 0 : row + tile_rows),
              .offset = (last ? next : begin) * 2,
              .count = tile_rows / token_pairs,
              .x_count = x_lines / row_pairs};
  ahead.x = packed_at<Whole>(p.packed, next, p.group, p.depth) +
            row / tile_rows * ahead.x_count * line * steps_of(block) * token_pairs;
  return ahead;
}

// 32 rows of a panel in a run.
void multiply_rows(const PanelProduct& p, std::int64_t row, std::int64_t begin, std::int64_t count, float* sums) {
  const bool many = p.tokens > many_tokens;
  const std::int64_t token_groups = groups_of(p.tokens);
  const RowGroup rows[2] = {
      find_group(p.rows + row, begin, count, many, p.scratch),
      find_group(p.rows + row + side, begin, count, many, p.scratch + side * copy_stride(run_of_one_group))};
  finish_stores();
  Ahead ahead = many ? ahead_of(p, row, begin) : Ahead{};
  for (std::int64_t group = 0; group < token_groups; group += 2) {
    const Tiles tiles{p, rows, group, begin, count, tile_sums_at(sums, p, row, group)};
    group + 1 < token_groups ? multiply_tiles<true>(tiles, ahead) : multiply_tiles<false>(tiles, ahead);
  }
}

void multiply_packed(const PanelProduct& p) {
  static const TileConfig config;
  _tile_loadconfig(&config);
  auto* sums = reinterpret_cast<float*>(p.scratch + copy_bytes);
  const std::int64_t run = run_for(p.tokens);
  for (std::int64_t begin = 0; begin < p.depth; begin += run) {
    const std::int64_t count = p.depth - begin < run ? p.depth - begin : run;
    for (std::int64_t row = 0; row < p.row_count; row += tile_rows) multiply_rows(p, row, begin, count, sums);
  }
  _tile_release();
  for (std::int64_t row = 0; row < p.row_count; row += tile_rows) {
    turn_sums(p, row, sums,
              [](__mmask16 used, float* out, __m512 values) { _mm512_mask_storeu_ps(out, used, values); });
  }
}

constexpr Kernel kernels[] = {{.name = "amx_bf16",
                               .dtype = DType::bf16,
                               .tile_rows = tile_rows,
                               .tile_tokens = tile_tokens,
                               .scratch_bytes = scratch_bytes,
                               .multiply = multiply_packed,
                               .packed_tokens = side,
                               .packed_bytes = packed_bytes<Whole>,
                               .pack = pack_tokens<Whole>}};

}  // namespace

KernelList amx_bf16_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
