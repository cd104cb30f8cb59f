#include <gtest/gtest.h>

#include <vector>

#include "cuda/elementwise/tile.hpp"

// The tiles of the element-wise kernel cover every unit of a grid exactly once: the kernel's index arithmetic, done
// here on the host.
namespace gatefold::cuda {
namespace {

std::vector<int> visits(std::int64_t rows, std::int64_t columns, const TileShape& tile) {
  std::vector<int> count(static_cast<std::size_t>(rows * columns));
  const std::int64_t column_tiles = ceil_div(columns, tile.columns());
  const int threads = 1 << tile.log2_threads;
  const int lanes = 1 << tile.log2_lanes;
  for (std::int64_t block = 0; block < column_tiles * ceil_div(rows, tile.rows()); ++block) {
    for (int thread = 0; thread < threads; ++thread) {
      for (int i = 0; i < 1 << (tile.log2_column_steps + tile.log2_row_steps); ++i) {
        const std::int64_t row =
            block / column_tiles * tile.rows() + thread / lanes + (i >> tile.log2_column_steps) * (threads / lanes);
        const std::int64_t column =
            block % column_tiles * tile.columns() + thread % lanes + (i & ((1 << tile.log2_column_steps) - 1)) * lanes;
        if (row < rows && column < columns) ++count[static_cast<std::size_t>(row * columns + column)];
      }
    }
  }
  return count;
}

TEST(Tiles, CoverEveryUnitOnce) {
  for (const std::int64_t rows : {1, 2, 3, 31, 64, 257}) {
    for (const std::int64_t columns : {1, 2, 3, 5, 31, 32, 33, 130, 256, 1025, 1792}) {
      for (int log2_units = 0; log2_units <= 3; ++log2_units) {
        const TileShape tile = pick_tile(rows, columns, 8, log2_units);
        for (const int count : visits(rows, columns, tile)) ASSERT_EQ(count, 1) << rows << " x " << columns;
      }
    }
  }
}

TEST(Tiles, WasteLittle) {
  for (const std::int64_t columns : {1, 7, 30, 60, 100, 130, 1792, 3584}) {
    const TileShape tile = pick_tile(4096, columns, 8, 2);
    // Rows of up to 32 units round up to a power of two, longer ones to a multiple of 32.
    const std::int64_t padded = columns <= 32
                                    ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns)))
                                    : ceil_div(columns, 32) * 32;
    EXPECT_LE(covered_units(tile, 4096, columns), 4096 * padded) << columns;
  }
}

TEST(Tiles, ThreadsOfAWarpShareARow) {
  for (const std::int64_t columns : {32, 33, 1000, 1 << 20}) {
    EXPECT_GE(pick_tile(100, columns, 8, 2).log2_lanes, 5) << columns;
  }
}

// 132 multiprocessors: a small problem is spread over all of them, a large one fills each thread.
TEST(Tiles, UnitsPerThreadFollowTheSize) {
  EXPECT_EQ(pick_log2_units(1792, 8, 2, 132), 0);
  EXPECT_EQ(pick_log2_units(std::int64_t{4} * 132 * 256 * 2, 8, 2, 132), 1);
  EXPECT_EQ(pick_log2_units(std::int64_t{1} << 40, 8, 2, 132), 2);
}

// 132 multiprocessors: 30 blocks of 1024 each, or blocks of 256.
TEST(Tiles, LongRowsTakeLargeBlocks) {
  EXPECT_EQ(pick_row_threads(1, 132), 256);
  EXPECT_EQ(pick_row_threads(std::int64_t{30} * 132 * 1024 - 1, 132), 256);
  EXPECT_EQ(pick_row_threads(std::int64_t{30} * 132 * 1024, 132), 1024);
  EXPECT_EQ(pick_row_threads(std::int64_t{1} << 40, 132), 1024);
}

// Of runs of 3 units columns 0, 1, 2 begin at 0, 1, 2, then 3, 4, 5 at 6, 7, 8; and the quotient is exact for any
// length and column, those of which it would be one too large among them.
TEST(AnyRun, FindsEveryColumn) {
  const std::int64_t most = (std::int64_t{1} << 62) - 1;
  for (const std::int64_t length : {std::int64_t{2}, std::int64_t{3}, std::int64_t{5}, std::int64_t{6}, std::int64_t{7},
                                    std::int64_t{12}, std::int64_t{24}, std::int64_t{1000}, (std::int64_t{1} << 31) - 1,
                                    (std::int64_t{1} << 31) + 1, (std::int64_t{3} << 40) + 1}) {
    const AnyRun runs(length);
    for (std::int64_t c = 0; c < 200; ++c) ASSERT_EQ(runs.input_column(c), c / length * 2 * length + c % length);
    for (std::int64_t quotient = 1; quotient <= most / length; quotient *= 2) {
      for (const std::int64_t c : {quotient * length - 1, quotient * length, quotient * length + 1}) {
        ASSERT_EQ(runs.input_column(c), c / length * 2 * length + c % length) << c << " of runs of " << length;
      }
    }
  }
}

TEST(Tiles, GridsHoldEveryTile) {
  for (const std::int64_t row_tiles :
       {std::int64_t{1}, std::int64_t{65535}, std::int64_t{65536}, std::int64_t{1} << 31}) {
    const BlockGrid grid = block_grid(3, row_tiles);
    ASSERT_TRUE(grid.fits);
    EXPECT_EQ(grid.x, 3U);
    EXPECT_GE(std::int64_t{grid.y} * grid.z, row_tiles);
    EXPECT_LE(grid.y, 65535U);
    EXPECT_LE(grid.z, 65535U);
  }
  EXPECT_FALSE(block_grid(std::int64_t{1} << 31, 1).fits);
  EXPECT_FALSE(block_grid(1, std::int64_t{1} << 32).fits);
}

}  // namespace
}  // namespace gatefold::cuda
