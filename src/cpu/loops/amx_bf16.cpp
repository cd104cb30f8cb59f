#include <immintrin.h>

#include "cpu/loops/nest.hpp"

// bf16 by the matrix unit (AMX): a tile register holds 16 rows of 64 bytes, and one instruction adds the products of 16
// rows of weights with 16 tokens, 32 elements deep, to 16 x 16 sums.
//
//   weights: 16 rows x 32 elements, straight from memory where 16 rows are evenly spaced; else copied block by block.
//
//   x: 16 pairs x 16 tokens; pack_tokens() has brought it into this order, once for a run.
//
//   sums: 16 rows x 16 tokens in fp32; they wait in the scratch from one block to the next, unfolded.
//
// Each sum is formed over k from the first pair to the last, whatever blocks there are: its bits depend on nothing but
// its row and its token. Products are rounded to nearest even; subnormal factors count as 0.
namespace gatefold::cpu {
namespace {

using Bits = std::uint16_t;

constexpr std::int64_t side = 16;  // of a tile: rows, tokens, or pairs
constexpr std::int64_t step = 32;  // elements of a row that a tile holds
constexpr std::int64_t tile_bytes = 1024;
constexpr std::int64_t tile_sums = side * side;
constexpr std::int64_t tile_rows = 2 * side;  // two by two tiles of sums are worked on at a time
constexpr std::int64_t tile_tokens = 2 * side;
constexpr std::int64_t most_groups = most_rows / side;

// Elements of a block. Many tokens: two tiles' worth of x, 32 KiB, stay in the first-level cache. Few: longer stretches
// of each row come from memory.
constexpr std::int64_t block_of_many = 512;
constexpr std::int64_t block_of_few = 2048;

constexpr std::int64_t groups_of(std::int64_t count) { return (count + side - 1) / side; }
constexpr std::int64_t steps_of(std::int64_t depth) { return (depth + step - 1) / step; }

// The scratch: copied weights of a block, then the sums.
constexpr std::int64_t copy_bytes = most_rows * block_of_few * 2;
constexpr std::int64_t scratch_bytes = copy_bytes + (most_sums + most_rows * side) * 4;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// 16 rows of weights in a block.
struct RowGroup {
  const std::byte* first;
  std::int64_t stride;  // bytes
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
      const std::int64_t left = count - k;
      const __mmask32 used = left < step ? (std::uint32_t{1} << left) - 1U : ~std::uint32_t{0};
      _mm512_store_si512(out + r * stride + k * 2, _mm512_maskz_loadu_epi16(used, from + k));
    }
  }
}

// The tile loads are no accesses that the compiler knows of.
GATEFOLD_LOOP void finish_stores() { __asm__ volatile("" ::: "memory"); }

// What a tile works on: one or two groups of rows, one or two of tokens.
struct Tiles {
  const RowGroup* rows;
  const std::byte* x;    // packed, of the first group's tokens
  std::int64_t x_group;  // bytes from one group of tokens to the next
  std::int64_t steps;
  float* sums;  // of the first group of rows and of tokens
  std::int64_t sums_group;
  bool first;
};

// Registers 0 to 3 hold sums, 4 and 5 weights, 6 and 7 x.
template <bool two_tokens>
void multiply_tiles(const Tiles& t) {
  if (t.first) {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (two_tokens) {
      _tile_zero(2);
      _tile_zero(3);
    }
  } else {
    _tile_loadd(0, t.sums, 64);
    _tile_loadd(1, t.sums + t.sums_group, 64);
    if constexpr (two_tokens) {
      _tile_loadd(2, t.sums + tile_sums, 64);
      _tile_loadd(3, t.sums + t.sums_group + tile_sums, 64);
    }
  }
  const RowGroup a = t.rows[0];
  const RowGroup b = t.rows[1];
  for (std::int64_t s = 0; s < t.steps; ++s) {
    _tile_loadd(4, a.first + s * 64, a.stride);
    _tile_loadd(6, t.x + s * tile_bytes, 64);
    _tile_loadd(5, b.first + s * 64, b.stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (two_tokens) _tile_loadd(7, t.x + t.x_group + s * tile_bytes, 64);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (two_tokens) {
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, t.sums, 64);
  _tile_stored(1, t.sums + t.sums_group, 64);
  if constexpr (two_tokens) {
    _tile_stored(2, t.sums + tile_sums, 64);
    _tile_stored(3, t.sums + t.sums_group + tile_sums, 64);
  }
}

// 16 tokens' sums of four rows: [row][token] to [token][row].
GATEFOLD_LOOP void turn_quad(const float* from, std::int64_t tokens, float* out) {
  const __m512 low01 = _mm512_unpacklo_ps(_mm512_load_ps(from), _mm512_load_ps(from + 16));
  const __m512 high01 = _mm512_unpackhi_ps(_mm512_load_ps(from), _mm512_load_ps(from + 16));
  const __m512 low23 = _mm512_unpacklo_ps(_mm512_load_ps(from + 32), _mm512_load_ps(from + 48));
  const __m512 high23 = _mm512_unpackhi_ps(_mm512_load_ps(from + 32), _mm512_load_ps(from + 48));
  // A quarter for each of tokens j, j + 4, j + 8 and j + 12.
  const __m512 j0 = _mm512_shuffle_ps(low01, low23, 0x44);
  const __m512 j1 = _mm512_shuffle_ps(low01, low23, 0xee);
  const __m512 j2 = _mm512_shuffle_ps(high01, high23, 0x44);
  const __m512 j3 = _mm512_shuffle_ps(high01, high23, 0xee);
  const __m512 even_low = _mm512_shuffle_f32x4(j0, j1, 0x44);
  const __m512 even_high = _mm512_shuffle_f32x4(j0, j1, 0xee);
  const __m512 odd_low = _mm512_shuffle_f32x4(j2, j3, 0x44);
  const __m512 odd_high = _mm512_shuffle_f32x4(j2, j3, 0xee);
  const __m512 turned[4] = {
      _mm512_shuffle_f32x4(even_low, odd_low, 0x88), _mm512_shuffle_f32x4(even_low, odd_low, 0xdd),
      _mm512_shuffle_f32x4(even_high, odd_high, 0x88), _mm512_shuffle_f32x4(even_high, odd_high, 0xdd)};
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t left = (tokens - 4 * i) * 4;
    if (left <= 0) return;
    const auto used = static_cast<__mmask16>(left < 16 ? (1U << left) - 1U : 0xffffU);
    _mm512_mask_storeu_ps(out + 16 * i, used, turned[i]);
  }
}

// The finished sums, to the order that every kernel leaves them in.
void turn_sums(const PanelProduct& p, const float* sums) {
  const std::int64_t token_groups = groups_of(p.tokens);
  for (std::int64_t row = 0; row < p.row_count; row += tile_rows_of) {
    const float* line = sums + row / side * token_groups * tile_sums + row % side * side;
    float* out = p.sums + row * p.tokens;
    for (std::int64_t g = 0; g < token_groups; ++g) {
      turn_quad(line + g * tile_sums, p.tokens - g * side, out + g * side * tile_rows_of);
    }
  }
}

// Where a block's weights are; they are copied if they are unevenly spaced, or end within a step.
void find_groups(const PanelProduct& p, std::int64_t begin, std::int64_t count, std::byte* copies, RowGroup* groups) {
  for (std::int64_t g = 0; g < p.row_count / side; ++g) {
    const std::byte* const* rows = p.rows + g * side;
    std::int64_t stride = 0;
    if (count % step == 0 && evenly_spaced(rows, stride)) {
      groups[g] = {rows[0] + begin * 2, stride};
      continue;
    }
    constexpr std::int64_t copy_stride = block_of_few * 2;
    std::byte* copy = copies + g * side * copy_stride;
    copy_rows(rows, begin, count, copy, copy_stride);
    groups[g] = {copy, copy_stride};
  }
  finish_stores();
}

void multiply_block(const PanelProduct& p, std::int64_t begin, std::int64_t count, const RowGroup* groups,
                    float* sums) {
  const std::int64_t token_groups = groups_of(p.tokens);
  const std::int64_t x_group = steps_of(p.depth) * tile_bytes;
  const std::int64_t row_groups = p.row_count / side;
  for (std::int64_t token = 0; token < token_groups; token += 2) {
    for (std::int64_t row = 0; row < row_groups; row += 2) {
      const Tiles tiles{.rows = groups + row,
                        .x = p.x + token * x_group + begin / step * tile_bytes,
                        .x_group = x_group,
                        .steps = steps_of(count),
                        .sums = sums + (row * token_groups + token) * tile_sums,
                        .sums_group = token_groups * tile_sums,
                        .first = begin == 0};
      const bool two = token + 1 < token_groups;
      two ? multiply_tiles<true>(tiles) : multiply_tiles<false>(tiles);
    }
  }
}

void multiply_packed(const PanelProduct& p) {
  static const TileConfig config;
  _tile_loadconfig(&config);
  auto* sums = reinterpret_cast<float*>(p.scratch + copy_bytes);
  const std::int64_t block = p.tokens > side ? block_of_many : block_of_few;
  for (std::int64_t begin = 0; begin < p.depth; begin += block) {
    const std::int64_t left = p.depth - begin;
    const std::int64_t count = left < block ? left : block;
    RowGroup groups[most_groups];
    find_groups(p, begin, count, p.scratch, groups);
    multiply_block(p, begin, count, groups, sums);
  }
  _tile_release();
  turn_sums(p, sums);
}

// ---- x -------------------------------------------------------------------------------------------------------------

GATEFOLD_LOOP __m512i unpack_low(__m512i a, __m512i b) { return _mm512_unpacklo_epi32(a, b); }
GATEFOLD_LOOP __m512i unpack_high(__m512i a, __m512i b) { return _mm512_unpackhi_epi32(a, b); }

// 16 x 16 words, rows to columns.
GATEFOLD_LOOP void turn_words(__m512i (&v)[16]) {
  __m512i a[16];
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
    const __m512i low01 = unpack_low(v[q], v[q + 1]);
    const __m512i high01 = unpack_high(v[q], v[q + 1]);
    const __m512i low23 = unpack_low(v[q + 2], v[q + 3]);
    const __m512i high23 = unpack_high(v[q + 2], v[q + 3]);
    a[q] = _mm512_unpacklo_epi64(low01, low23);  // of four rows the words 0, 4, 8 and 12, a quarter each
    a[q + 1] = _mm512_unpackhi_epi64(low01, low23);
    a[q + 2] = _mm512_unpacklo_epi64(high01, high23);
    a[q + 3] = _mm512_unpackhi_epi64(high01, high23);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i low_ab = _mm512_shuffle_i32x4(a[j], a[j + 4], 0x44);
    const __m512i high_ab = _mm512_shuffle_i32x4(a[j], a[j + 4], 0xee);
    const __m512i low_cd = _mm512_shuffle_i32x4(a[j + 8], a[j + 12], 0x44);
    const __m512i high_cd = _mm512_shuffle_i32x4(a[j + 8], a[j + 12], 0xee);
    v[j] = _mm512_shuffle_i32x4(low_ab, low_cd, 0x88);
    v[j + 4] = _mm512_shuffle_i32x4(low_ab, low_cd, 0xdd);
    v[j + 8] = _mm512_shuffle_i32x4(high_ab, high_cd, 0x88);
    v[j + 12] = _mm512_shuffle_i32x4(high_ab, high_cd, 0xdd);
  }
}

// One group of up to 16 tokens: for each step its 16 pairs, of each pair the tokens. Past the last token and the last
// element come zeros.
void pack_tokens(const TokenPack& p) {
  for (std::int64_t k = 0; k < p.depth; k += step) {
    const std::int64_t left = p.depth - k;
    const __mmask32 used = left < step ? (std::uint32_t{1} << left) - 1U : ~std::uint32_t{0};
    __m512i words[16];
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) {
      words[t] = t < p.tokens ? _mm512_maskz_loadu_epi16(used, reinterpret_cast<const Bits*>(p.x + t * p.x_stride) + k)
                              : _mm512_setzero_si512();
    }
    turn_words(words);
    std::byte* out = p.out + k / step * tile_bytes;
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < 16; ++i) _mm512_store_si512(out + i * 64, words[i]);
  }
}

std::int64_t packed_bytes(std::int64_t depth) { return steps_of(depth) * tile_bytes; }

constexpr Kernel kernels[] = {{.name = "amx_bf16",
                               .dtype = DType::bf16,
                               .tile_rows = tile_rows,
                               .tile_tokens = tile_tokens,
                               .scratch_bytes = scratch_bytes,
                               .multiply = multiply_packed,
                               .packed_tokens = side,
                               .packed_bytes = packed_bytes,
                               .pack = pack_tokens}};

}  // namespace

KernelList amx_bf16_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
