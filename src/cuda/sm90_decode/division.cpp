#include "cuda/sm90_decode/division.hpp"

#include "core/arithmetic.hpp"

namespace gatefold::cuda::sm90_decode {

namespace {

// In the time of so many k-steps the blocks put a tile's sums together. On an H100 Llama 8B ran at 0.91 of reading its
// weights with all sums divided by two, at 0.87 by four, where this makes gate_up's division by two the better one.
constexpr std::int64_t exchange_steps(int split) { return split / 2; }

}  // namespace

std::int64_t row_tiles(Product product, const Problem& problem) {
  return ceil_div(problem.intermediate_size, tile_columns(product));
}

std::int64_t k_steps(const Problem& problem) { return ceil_div(problem.hidden_size, Config::tile_k); }

int split_of(Product product, const Problem& problem, const ResidentClusters& clusters) {
  int best = 0;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (clusters[i] == 0 || splits[i] > k_steps(problem)) continue;
    const std::int64_t rounds = ceil_div(row_tiles(product, problem), clusters[i]);
    const std::int64_t steps = rounds * (ceil_div(k_steps(problem), splits[i]) + exchange_steps(splits[i]));
    if (best != 0 && steps >= least) continue;
    best = splits[i];
    least = steps;
  }
  return best;
}

}  // namespace gatefold::cuda::sm90_decode
