#include "cuda/sm80/config.hpp"

#include "core/status.hpp"

namespace gatefold::cuda::sm80 {

std::string to_string(const Config& c) {
  std::string text = concat(to_string(c.op), " ", to_string(c.dtype), " ", c.tile_m, "x", c.tile_n, "x", c.tile_k, ", ",
                            c.stages, " stages, ", c.warps_m, "x", c.warps_n, " warps");
  if (c.gated_pair()) text += concat(", ", to_string(c.gating));
  if (c.lines) text += ", whole lines";
  if (c.rolling) text += ", rolling";
  if (c.blocks_per_sm > 1) text += concat(", ", c.blocks_per_sm, " blocks per SM");
  return text;
}

}  // namespace gatefold::cuda::sm80
