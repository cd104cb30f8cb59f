#pragma once

#include "cpu/loops/ahead.hpp"

// Weights that come from memory are read fastest in as many streams as a tile has rows, each of consecutive rows: that
// is what the processor's own fetch follows best. It is helped by asking for lines a little ahead
// (docs/kernels/cpu_log.md).
namespace gatefold::cpu {
namespace {

// Whether a block of the first tokens' rows is read in streams of its own (multiply_first_rows): not with blocks of
// less than 4 KiB, whose streams break off too often.
template <class Policy>
constexpr bool first_in_streams = Policy::k_block * static_cast<std::int64_t>(sizeof(typename Policy::Element)) >= 4096;

// A tile's rows, so many apart in a panel, from element `begin` on.
template <class Policy>
GATEFOLD_LOOP TileRows<Policy> rows_at(const std::byte* const* of_panel, std::int64_t apart, std::int64_t begin) {
  TileRows<Policy> rows;
  for (int r = 0; r < tile_rows_of; ++r) {
    rows.row[r] = reinterpret_cast<const typename Policy::Element*>(of_panel[r * apart]) + begin;
  }
  return rows;
}

template <class Policy>
GATEFOLD_LOOP AheadRows ahead_at(const std::byte* const* of_panel, std::int64_t apart, std::int64_t begin) {
  AheadRows rows;
  for (int r = 0; r < tile_rows_of; ++r) rows.row[r] = of_panel[r * apart] + begin * Policy::stored_bytes;
  return rows;
}

// The sums of a panel's first tokens with rows that lie `apart`, to and from a tile's own, [tokens][rows].
template <int tokens>
struct SpreadSums {
  const PanelProduct& panel;
  std::int64_t first;  // row
  std::int64_t apart;

  GATEFOLD_LOOP float* of(int r) const {
    const std::int64_t row = first + r * apart;
    return panel.sums + row / tile_rows_of * panel.tokens * tile_rows_of + row % tile_rows_of;
  }
  GATEFOLD_LOOP void load(float* own) const {
    for (int r = 0; r < tile_rows_of; ++r) {
      for (int t = 0; t < tokens; ++t) own[t * tile_rows_of + r] = of(r)[t * tile_rows_of];
    }
  }
  GATEFOLD_LOOP void store(const float* own) const {
    for (int r = 0; r < tile_rows_of; ++r) {
      for (int t = 0; t < tokens; ++t) of(r)[t * tile_rows_of] = own[t * tile_rows_of + r];
    }
  }
};

// A panel with the tokens of one tile: each row from one end to the other.
template <class Policy, int tokens>
void multiply_streams(const PanelProduct& p) {
  using Element = typename Policy::Element;
  const std::int64_t apart = p.row_count / tile_rows_of;
  const std::int64_t x_stride = p.x_stride / static_cast<std::int64_t>(sizeof(Element));
  for (std::int64_t row = 0; row < apart; ++row) {
    float sums[tokens * tile_rows_of] = {};
    for (Block block = block_from<Policy>(0, p.depth); block.count > 0;
         block = block_from<Policy>(block.begin + block.count, p.depth)) {
      const TileTokens<Element> x{reinterpret_cast<const Element*>(p.x) + block.begin, x_stride};
      // Beyond a row's end lies the next one, as a rule; after the panel's last rows come the next panel's.
      const bool beyond = row + 1 == apart && block.begin + block.count == p.depth && p.next_rows != nullptr;
      TileAhead ahead{ahead_at<Policy>(p.rows + row, apart, block.begin + only_lead<Policy>), {}, block.count};
      if (beyond) ahead.then = ahead_at<Policy>(p.next_rows, apart, only_lead<Policy> - block.count);
      if (beyond) ahead.turn -= only_lead<Policy>;
      multiply_tile<Policy, tokens, tile_rows_of>(rows_at<Policy>(p.rows + row, apart, block.begin), ahead, x,
                                                  block.count, sums, block.begin == 0);
    }
    SpreadSums<tokens>{p, row, apart}.store(sums);
  }
}

// The first tokens of more: a block of each row.
template <class Policy, int tokens, class X>
void multiply_first_rows(const PanelProduct& p, const Block& block, const TileTokens<X>& x) {
  const std::int64_t apart = p.row_count / tile_rows_of;
  const Block next = block_from<Policy>(block.begin + block.count, p.depth);
  for (std::int64_t row = 0; row < apart; ++row) {
    // After a block of these rows comes that of the next ones, then the next block, then the next panel.
    const bool more_rows = row + 1 < apart;
    const bool beyond = !more_rows && next.count == 0 && p.next_rows != nullptr;
    const std::byte* const* then = more_rows ? p.rows + row + 1 : beyond ? p.next_rows : p.rows;
    const std::int64_t then_begin = more_rows ? block.begin : next.count > 0 ? next.begin : 0;
    const TileAhead ahead{ahead_at<Policy>(p.rows + row, apart, block.begin + first_lead<Policy>),
                          ahead_at<Policy>(then, apart, then_begin + first_lead<Policy> - block.count),
                          block.count - first_lead<Policy>};
    const SpreadSums<tokens> of_panel{p, row, apart};
    float sums[tokens * tile_rows_of] = {};
    if (block.begin > 0) of_panel.load(sums);
    multiply_tile<Policy, tokens, tile_rows_of>(rows_at<Policy>(p.rows + row, apart, block.begin), ahead, x,
                                                block.count, sums, block.begin == 0);
    of_panel.store(sums);
  }
}

}  // namespace
}  // namespace gatefold::cpu
