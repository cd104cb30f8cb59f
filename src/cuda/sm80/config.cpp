#include "cuda/sm80/config.hpp"

#include "core/status.hpp"

namespace gatefold::cuda::sm80 {

std::string to_string(const Config& c) {
  std::string text = concat(to_string(c.op), " ", to_string(c.dtype), " ", c.tile_m, "x", c.tile_n, "x", c.tile_k, ", ",
                            c.stages, " stages, ", c.warps_m, "x", c.warps_n, " warps");
  if (c.gated_pair()) text += concat(", ", to_string(c.gating));
  if (c.blocks_per_sm > 1) text += concat(", ", c.blocks_per_sm, " blocks per SM");
  return text;
}

std::int32_t raster_group(std::int64_t tiles_m) {
  // A wave of 132 tiles of 128 x 256 touches the fewest operand rows as 16 x 8 tiles. Measured on an H200, 12 is best
  // for 64 tiles of rows (5 % ahead of no groups), and up to 24 makes no difference.
  constexpr std::int64_t most = 12;
  const std::int64_t groups = (tiles_m + most - 1) / most;
  return static_cast<std::int32_t>((tiles_m + groups - 1) / groups);
}

}  // namespace gatefold::cuda::sm80
