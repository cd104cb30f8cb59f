#pragma once

#include "cpu/loops/tile.hpp"

// What is asked for ahead of its use.
namespace gatefold::cpu {
namespace {

// How rows that come from memory are prefetched:
//
//   fetch_locality     the cache for rows that are read in streams, as __builtin_prefetch counts them
//   only_lead_bytes    how far ahead of their own use those are asked for, where one tile holds all tokens
//   first_lead_bytes   the same by the first tile of more
//   later_locality     the cache for rows of a later block
//
// What is asked for into a first-level cache of 32 KiB, of which x takes 24, drives x out of it. Memory keeps up with
// one row's lines during a tile, not with two rows': asked for at that pace, all rows of the next block take four tiles
// of tokens. Where as many come and rows have several blocks, at whose ends streams break off, none needs streams
// (docs/kernels/cpu_log.md).
template <class Policy>
struct Fetched : Policy {
  static constexpr std::int64_t stored_bytes = sizeof(typename Policy::Element);
  static constexpr std::int64_t most_passes = std::int64_t{1} << 62;
  static constexpr std::int64_t streamed_passes = most_passes;  // up to so many the first one is a stream's
  static constexpr std::int64_t asking_passes = most_passes;    // so many ask for the next block, if none is
};
template <class Policy>
struct FetchedToFirstLevel : Fetched<Policy> {
  static constexpr int fetch_locality = 3;
  static constexpr int later_locality = 3;
  static constexpr std::int64_t only_lead_bytes = 1024;
  static constexpr std::int64_t first_lead_bytes = 1024;
};
template <class Policy>
struct FetchedToSecondLevel : Fetched<Policy> {
  static constexpr int fetch_locality = 2;
  static constexpr int later_locality = 2;
  static constexpr std::int64_t only_lead_bytes = 2048;
  static constexpr std::int64_t first_lead_bytes = 2048;
};
template <class Policy>
struct FetchedAtAPace : Fetched<Policy> {
  static constexpr int fetch_locality = 3;
  static constexpr int later_locality = 2;
  static constexpr std::int64_t only_lead_bytes = Policy::in_place ? 1024 : 2048;
  static constexpr std::int64_t first_lead_bytes = 2048;
  static constexpr std::int64_t streamed_passes = 3;
  static constexpr std::int64_t asking_passes = 4;
};

// In elements.
template <class Policy>
constexpr std::int64_t only_lead = Policy::only_lead_bytes / Policy::stored_bytes;
template <class Policy>
constexpr std::int64_t first_lead = Policy::first_lead_bytes / Policy::stored_bytes;

// The rows that tiles ask for ahead of their turn: those of this panel, block by block, then the first block of the
// next panel's. They are a whole block further, and spread over all tiles, so that memory is read while later tokens
// are multiplied, not only during the first ones. Where the first tokens read in streams, only later ones ask: lines
// that are asked for while many are on their way are forgotten.
class Later {
 public:
  // passes: over the rows of a block that ask, each with a tile's tokens; 0: none asks.
  GATEFOLD_LOOP Later(const PanelProduct& panel, std::int64_t block_bytes, std::int64_t row_bytes, std::int64_t passes)
      : panel_(panel), block_bytes_(block_bytes), row_bytes_(row_bytes), passes_(passes), row_(panel.row_count) {
    turn_over();
  }

  // The rows that are due with a tile; how many there are: at most two.
  GATEFOLD_LOOP int take(AheadRows& out) {
    int count = 0;
    if (passes_ == 0) return count;
    for (due_ += tile_rows_of; due_ >= passes_; due_ -= passes_) {
      const std::byte* const* rows = beyond_ ? panel_.next_rows : panel_.rows;
      if (rows == nullptr) continue;
      out.row[count++] = rows[row_] + begin_;
      ++row_;
      turn_over();
    }
    return count;
  }

 private:
  GATEFOLD_LOOP void turn_over() {
    if (row_ < panel_.row_count) return;
    row_ -= panel_.row_count;
    begin_ += block_bytes_;
    if (begin_ < row_bytes_) return;
    begin_ = 0;
    beyond_ = true;
  }

  const PanelProduct& panel_;
  std::int64_t block_bytes_;
  std::int64_t row_bytes_;
  std::int64_t passes_;
  std::int64_t begin_ = 0;  // of the block that they are in
  std::int64_t row_;        // the next one
  std::int64_t due_ = 0;    // in parts of a row, as many as there are passes
  bool beyond_ = false;     // this panel
};

template <class Policy>
GATEFOLD_LOOP Later later_rows(const PanelProduct& p, std::int64_t passes) {
  return {p, Policy::k_block * Policy::stored_bytes, p.depth * Policy::stored_bytes, passes};
}

}  // namespace
}  // namespace gatefold::cpu
