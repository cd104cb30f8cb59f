#pragma once

#include <cstdint>

// In which order the tiles of the output are taken. Pure arithmetic, for the host and the device.
namespace gatefold::cuda::sm80 {

// A tile of the output, or half of it: the first half of its rows or the second.
struct TileCoord {
  std::int32_t m = 0;
  std::int32_t n = 0;
  bool half = false;
  bool second = false;
};

// Of so many tiles for so many blocks, those that are computed whole: all, or, where the halves of what a last round
// would leave are no more than the blocks, the tiles before it.
constexpr std::int32_t whole_tiles(std::int64_t tiles, std::int64_t blocks) {
  const std::int64_t left = tiles % blocks;
  return static_cast<std::int32_t>(2 * left <= blocks ? tiles - left : tiles);
}

// How many tiles of rows are swept together: about the same number in each group.
constexpr std::int32_t raster_group(std::int64_t tiles_m, int tile_m) {
  // A wave of 132 tiles of 128 x 256 touches the fewest operand rows as 16 x 8 tiles. Measured on an H200, 12 is best
  // for 64 tiles of rows (5 % ahead of no groups), and up to 24 makes no difference. Of 256 x 192 it would be 10 x 13
  // tiles; for 32 tiles of rows 8 and 11 are best.
  const std::int64_t most = tile_m < 256 ? 12 : 10;
  const std::int64_t groups = (tiles_m + most - 1) / most;
  return static_cast<std::int32_t>((tiles_m + groups - 1) / groups);
}

// Tiles are numbered down the rows first, in groups of group_m rows of tiles, so that the tiles in flight share both
// their rows of x and their rows of the weights in L2: 132 tiles as 16 x 8 touch 24 operand tiles, as 1 x 132 they
// would touch 133.
constexpr TileCoord tile_coord(std::int32_t index, std::int32_t tiles_m, std::int32_t tiles_n, std::int32_t group_m) {
  const std::int32_t per_group = group_m * tiles_n;
  const std::int32_t group = index / per_group;
  const std::int32_t within = index - group * per_group;
  const std::int32_t first_m = group * group_m;
  const std::int32_t left = tiles_m - first_m;
  const std::int32_t rows = left < group_m ? left : group_m;
  const std::int32_t n = within / rows;
  return {first_m + (within - n * rows), n};
}

// What is dealt out to the blocks: the whole tiles first, then the others, each as two halves.
constexpr TileCoord share_coord(std::int32_t index, std::int32_t whole_tiles, std::int32_t tiles_m,
                                std::int32_t tiles_n, std::int32_t group_m) {
  const std::int32_t halves = index - whole_tiles;  // before this one
  if (halves < 0) return tile_coord(index, tiles_m, tiles_n, group_m);
  TileCoord coord = tile_coord(whole_tiles + halves / 2, tiles_m, tiles_n, group_m);
  coord.half = true;
  coord.second = halves % 2 == 1;
  return coord;
}

}  // namespace gatefold::cuda::sm80
