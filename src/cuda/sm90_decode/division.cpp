#include "cuda/sm90_decode/division.hpp"

#include "core/arithmetic.hpp"

namespace gatefold::cuda::sm90_decode {

namespace {

// In the time of so many k-steps the blocks put a tile's sums together. On an H100 Llama 8B ran at 0.91 of reading its
// weights with all sums divided by two, at 0.87 by four, where this makes gate_up's division by two the better one.
constexpr std::int64_t exchange_steps(int split) { return split / 2; }

// A k-step takes as long as so many more rows of each slab: x, the barriers. On an H200 Llama 405B's 13 rounds of 64
// rows are faster than 15 of 56, whose rows are 3 % more (docs/kernels/decode_log.md).
constexpr std::int64_t step_rows = 8;

}  // namespace

std::int64_t row_tiles(Product product, const Problem& problem, int slab_rows) {
  return ceil_div(problem.intermediate_size, tile_columns(product, slab_rows));
}

std::int64_t k_steps(const Problem& problem) { return ceil_div(problem.hidden_size, Config::tile_k); }

bool divides(const Problem& problem, int slab_rows) {
  const std::int64_t block = problem.layout.block;
  return !problem.layout.interleaved() || block % slab_rows == 0 || slab_rows % block == 0;
}

Cut cut_of(Product product, const Problem& problem, const ResidentClusters& clusters) {
  Cut best;
  std::int64_t least = 0;
  for (const int slab_rows : slab_heights) {
    if (!divides(problem, slab_rows)) continue;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      if (clusters[i] == 0 || splits[i] > k_steps(problem)) continue;
      const std::int64_t rounds = ceil_div(row_tiles(product, problem, slab_rows), clusters[i]);
      const std::int64_t steps = rounds * (ceil_div(k_steps(problem), splits[i]) + exchange_steps(splits[i]));
      const std::int64_t time = steps * (slab_rows + step_rows);
      if (best.split != 0 && time >= least) continue;
      best = {splits[i], slab_rows};
      least = time;
    }
  }
  return best;
}

Geometry geometry_of(const Config& config, const Problem& problem, const Operands& operands, const Cut& cut) {
  const std::int64_t F = problem.intermediate_size;
  const std::int64_t token_tiles = ceil_div(operands.tokens, config.tokens);
  const std::int64_t block = config.product == Product::gate_up ? problem.layout.map(Half::gate, F).block : F;
  return {.tokens = static_cast<std::int32_t>(operands.tokens),
          .weights_settled = operands.weights_settled,
          .block = static_cast<std::int32_t>(block),
          .slab_rows = cut.slab_rows,
          .k_steps = static_cast<std::int32_t>(k_steps(problem)),
          .token_tiles = static_cast<std::int32_t>(token_tiles),
          .tiles = static_cast<std::int32_t>(row_tiles(config.product, problem, cut.slab_rows) * token_tiles),
          .split = cut.split};
}

}  // namespace gatefold::cuda::sm90_decode
