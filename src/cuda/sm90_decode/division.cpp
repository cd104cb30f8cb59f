#include "cuda/sm90_decode/division.hpp"

#include "core/arithmetic.hpp"

namespace gatefold::cuda::sm90_decode {

namespace {

// So many k-steps more clusters of four and eight cost, which leave multiprocessors without work. What the blocks of
// two exchange their finishers add up meanwhile: Qwen2.5 7B's gate_up is 2.5 % faster on an H200 with its sums divided
// by two than with slabs of 56 rows, 86 % of three rounds. Qwen3 14B's down-projection, 40 tiles, is 3 % faster divided
// by two, 61 % of a round, than by four (docs/kernels/decode_log.md).
constexpr std::int64_t exchange_steps(int split) { return split > 2 ? split / 2 : 0; }

// A k-step takes as long as so many more rows of each slab: x, the barriers. On an H200 Llama 405B's 13 rounds of 64
// rows are faster than 15 of 56, whose rows are 3 % more (docs/kernels/decode_log.md).
constexpr std::int64_t step_rows(int slab) { return slab / 8; }

// The lowest slabs are for so few tiles of whole ones that clusters of four leave multiprocessors idle. Of more they
// cost more than they fill: Qwen2.5 32B's down-projection, 40 tiles of 128 rows, takes 2 % longer in 64 of 80.
bool is_too_low(const Config& config, const Problem& problem, int slab_rows) {
  constexpr int lowest_of_many = 56;
  constexpr std::int64_t few = 30;
  return slab_rows < lowest_of_many && config.slab > lowest_of_many &&
         row_tiles(config.product, problem, config.slab) > few;
}

// How many k-steps are of whole lines: all, unless the last one ends within a line.
std::int64_t run_steps(const Config& config, const Problem& problem) {
  return problem.hidden_size % Config::box_k == 0 ? k_steps(config, problem) : problem.hidden_size / config.tile_k();
}

}  // namespace

std::int64_t row_tiles(Product product, const Problem& problem, int slab_rows) {
  return ceil_div(problem.intermediate_size, tile_columns(product, slab_rows));
}

std::int64_t k_steps(const Config& config, const Problem& problem) {
  return ceil_div(problem.hidden_size, std::int64_t{config.tile_k()});
}

bool divides(const Problem& problem, int slab_rows) {
  const std::int64_t block = problem.layout.block;
  return !problem.layout.interleaved() || block % slab_rows == 0 || slab_rows % block == 0;
}

Cut cut_of(const Config& config, const Problem& problem, const ResidentClusters& clusters) {
  const std::int64_t all_steps = k_steps(config, problem);
  Cut best;
  std::int64_t least = 0;
  for (const int slab_rows : slab_heights(config.slab)) {
    if (!divides(problem, slab_rows) || is_too_low(config, problem, slab_rows)) continue;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      if (clusters[i] == 0 || splits[i] > all_steps) continue;
      const std::int64_t rounds = ceil_div(row_tiles(config.product, problem, slab_rows), clusters[i]);
      const std::int64_t steps = rounds * (ceil_div(all_steps, std::int64_t{splits[i]}) + exchange_steps(splits[i]));
      const std::int64_t time = steps * (slab_rows + step_rows(config.slab));
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
          .k_steps = static_cast<std::int32_t>(k_steps(config, problem)),
          .run_steps = static_cast<std::int32_t>(run_steps(config, problem)),
          .token_tiles = static_cast<std::int32_t>(token_tiles),
          .tiles = static_cast<std::int32_t>(row_tiles(config.product, problem, cut.slab_rows) * token_tiles),
          .split = cut.split};
}

}  // namespace gatefold::cuda::sm90_decode
