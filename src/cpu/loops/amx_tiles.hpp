#pragma once

#include <immintrin.h>

#include "cpu/loops/nest.hpp"

// What the kernels of the matrix unit share. A tile register holds 16 rows of 64 bytes: 16 rows of weights or 16 pairs
// of x by 32 elements or 16 tokens of bf16, or 16 x 16 sums. Registers 0 to 3 hold sums, of two groups of 16 rows times
// one or two groups of 16 tokens; 4 and 5 weights, 6 and 7 x.
namespace gatefold::cpu {
namespace {

constexpr std::int64_t side = 16;          // of a tile: rows, tokens, or pairs
constexpr std::int64_t step = 32;          // elements of a row that a tile holds
constexpr std::int64_t tile_bytes = 1024;  // of operands, and of sums
constexpr std::int64_t tile_sums = side * side;
constexpr std::int64_t tile_rows = 2 * side;  // two by two tiles of sums are worked on at a time
constexpr std::int64_t tile_tokens = 2 * side;
constexpr std::int64_t line = 64;  // bytes of a cache line

constexpr std::int64_t groups_of(std::int64_t count) { return (count + side - 1) / side; }
constexpr std::int64_t steps_of(std::int64_t depth) { return (depth + step - 1) / step; }

// Where the sums of `row`, a multiple of tile_rows, and of a group of tokens wait: [row / 32][token group][row group].
GATEFOLD_LOOP float* tile_sums_at(float* sums, const PanelProduct& p, std::int64_t row, std::int64_t token_group) {
  return sums + (row / tile_rows * groups_of(p.tokens) + token_group) * 2 * tile_sums;
}
constexpr std::int64_t waiting_sums = most_sums + most_rows * side;  // at most

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The tile loads are no accesses that the compiler knows of.
GATEFOLD_LOOP void finish_stores() { __asm__ volatile("" ::: "memory"); }

template <bool two_tokens>
GATEFOLD_LOOP void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (two_tokens) {
    _tile_zero(2);
    _tile_zero(3);
  }
}

template <bool two_tokens>
GATEFOLD_LOOP void load_sums(const float* sums) {
  _tile_loadd(0, sums, 64);
  _tile_loadd(1, sums + tile_sums, 64);
  if constexpr (two_tokens) {
    _tile_loadd(2, sums + 2 * tile_sums, 64);
    _tile_loadd(3, sums + 3 * tile_sums, 64);
  }
}

template <bool two_tokens>
GATEFOLD_LOOP void store_sums(float* sums) {
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + tile_sums, 64);
  if constexpr (two_tokens) {
    _tile_stored(2, sums + 2 * tile_sums, 64);
    _tile_stored(3, sums + 3 * tile_sums, 64);
  }
}

// 16 tokens' sums of four rows, [row][token] to [token][row]: finish(used lanes, out, sums) four tokens at a time.
template <class Finish>
GATEFOLD_LOOP void turn_quad(const float* from, std::int64_t tokens, float* out, const Finish& finish) {
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
    finish(used, out + 16 * i, turned[i]);
  }
}

// The sums of 32 rows, to the order that every kernel leaves them in.
template <class Finish>
GATEFOLD_LOOP void turn_sums(const PanelProduct& p, std::int64_t row, float* sums, const Finish& finish) {
  for (std::int64_t group = 0; group < groups_of(p.tokens); ++group) {
    const float* tiles = tile_sums_at(sums, p, row, group);
    for (std::int64_t r = 0; r < tile_rows; r += tile_rows_of) {
      turn_quad(tiles + r / side * tile_sums + r % side * side, p.tokens - group * side,
                p.sums + (row + r) * p.tokens + group * side * tile_rows_of, finish);
    }
  }
}

}  // namespace
}  // namespace gatefold::cpu
