#include "cuda/sm80/config.hpp"

#include "core/status.hpp"

namespace gatefold::cuda::sm80 {

std::string name(const Config& c) {
  const std::string copies = c.copies == Copies::any_rows ? "" : concat(" ", to_string(c.copies));
  return concat(c.tile_m, "x", c.tile_n, copies, c.rolling ? " rolling" : "");
}

std::string to_string(const Config& c) {
  std::string text =
      concat(name(c), ", ", c.tile_k, " of k, ", c.stages, " stages, ", c.warps_m, "x", c.warps_n, " warps");
  if (c.gated_pair()) text += concat(", ", to_string(c.gating));
  if (c.cluster > 1) text += concat(", clusters of ", c.cluster);
  if (c.blocks_per_sm > 1) text += concat(", ", c.blocks_per_sm, " blocks per SM");
  return text;
}

}  // namespace gatefold::cuda::sm80
