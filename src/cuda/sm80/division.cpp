#include "cuda/sm80/division.hpp"

#include "core/arithmetic.hpp"
#include "cuda/sm80/layout_fit.hpp"

namespace gatefold::cuda::sm80 {

Division divide(const Config& c, const Problem& problem, std::int64_t tokens, std::int64_t resident) {
  if (tokens == 0) return {};
  const std::int64_t columns = problem.intermediate_size;
  const std::int64_t cluster_columns = std::int64_t{c.cluster} * c.out_columns();
  const std::int64_t tiles_m = ceil_div(tokens, c.tile_m);
  const std::int64_t tiles_n = ceil_div(columns, cluster_columns);
  Division d;
  d.tiles_m = static_cast<std::int32_t>(tiles_m);
  d.whole_n = static_cast<std::int32_t>(tiles_n);
  d.group_m = raster_group(tiles_m, c.tile_m);
  const std::int64_t left = tiles_m * tiles_n % resident;
  if (!c.narrows() || left == 0) return d;

  // Of the full rounds as many columns as are whole; what these leave free of the last of them takes narrow tiles too.
  const std::int64_t full = tiles_m * tiles_n - left;
  const std::int64_t whole_n = full / tiles_m;
  const std::int64_t room = resident + full - whole_n * tiles_m;
  for (const int thirds : {1, 2}) {
    const std::int64_t narrow_n = ceil_div(columns - whole_n * cluster_columns, cluster_columns / 3 * thirds);
    if (narrow_n * tiles_m > room || !fits_narrow(c, problem, thirds)) continue;
    d.whole_n = static_cast<std::int32_t>(whole_n);
    d.narrow_n = static_cast<std::int32_t>(narrow_n);
    d.thirds = thirds;
    break;
  }
  return d;
}

}  // namespace gatefold::cuda::sm80
