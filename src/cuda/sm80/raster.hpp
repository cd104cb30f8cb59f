#pragma once

#include <cstdint>

// In which order the tiles of the output are taken. Pure arithmetic, for the host and the device.
namespace gatefold::cuda::sm80 {

// A tile's place among its like.
struct TileIndex {
  std::int32_t m = 0;
  std::int32_t n = 0;
};

// What a block computes at a time: the output's tile of rows m from a first column on, as wide as a whole tile or as
// one or two thirds of it.
struct TileCoord {
  std::int32_t m = 0;
  std::int32_t column = 0;
  std::int32_t thirds = 3;
};

// How the output is divided among clusters of blocks: into tiles of which each block of a cluster has one, side by
// side; and, where whole tiles would leave a last round of the device half empty, the last columns into narrower ones.
//
//     columns   | whole | whole | whole | whole | narrow | narrow | narrow |
//               '----- whole_n, full rounds -----'------ narrow_n ---------'    a round, but a shorter one
struct Division {
  std::int32_t tiles_m = 0;
  std::int32_t whole_n = 0;   // columns of whole tiles, those of a cluster counted as one
  std::int32_t narrow_n = 0;  // of narrow ones after them
  std::int32_t thirds = 3;    // of a tile's width that a narrow one has
  std::int32_t group_m = 0;   // so many tiles of rows are swept column by column

  // Less than 2^31: as many tiles would be an output of terabytes.
  constexpr std::int32_t whole_tiles() const { return tiles_m * whole_n; }
  constexpr std::int32_t work_tiles() const { return tiles_m * (whole_n + narrow_n); }
};

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
constexpr TileIndex tile_index(std::int32_t index, std::int32_t tiles_m, std::int32_t tiles_n, std::int32_t group_m) {
  const std::int32_t per_group = group_m * tiles_n;
  const std::int32_t group = index / per_group;
  const std::int32_t within = index - group * per_group;
  const std::int32_t first_m = group * group_m;
  const std::int32_t left = tiles_m - first_m;
  const std::int32_t rows = left < group_m ? left : group_m;
  const std::int32_t n = within / rows;
  return {first_m + (within - n * rows), n};
}

// The tile of the block `rank` of a cluster, where tiles are `width` columns wide.
constexpr TileCoord whole_coord(const Division& d, std::int32_t index, int width, int cluster, std::int32_t rank) {
  const TileIndex tile = tile_index(index, d.tiles_m, d.whole_n, d.group_m);
  return {tile.m, (tile.n * cluster + rank) * width};
}

// The same of all that is dealt out to the clusters: the whole tiles first, then the narrow ones.
constexpr TileCoord work_tile_coord(const Division& d, std::int32_t index, int width, int cluster, std::int32_t rank) {
  const std::int32_t narrow = index - d.whole_tiles();
  if (narrow < 0) return whole_coord(d, index, width, cluster, rank);
  const TileIndex tile = tile_index(narrow, d.tiles_m, d.narrow_n, d.group_m);
  return {tile.m, d.whole_n * cluster * width + (tile.n * cluster + rank) * (width / 3 * d.thirds), d.thirds};
}

}  // namespace gatefold::cuda::sm80
