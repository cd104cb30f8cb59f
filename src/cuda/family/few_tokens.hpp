#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "core/problem.hpp"

// Who takes few tokens on compute capability 9.0: decode the fewest, up to 6, 8 or 12, sm90_decode beyond, and sm90
// from some number on, which hangs on the weights. Measured on H200s, a whole mlp or its products of nine models with 1
// to 64 tokens (docs/kernels/decode_log.md).
namespace gatefold::cuda {

// The most tokens for which decode is chosen, where nothing before it is.
inline constexpr std::int64_t most_tokens_of_decode = 16;

struct FewTokens {
  static constexpr std::int64_t multiprocessors = 132;
  static constexpr std::int64_t megabyte = 1'000'000;
  static constexpr std::int64_t first_beyond_decode = 9;  // tokens, where something else is there to take them

  static std::int64_t weight_bytes(const Problem& p) {
    return p.hidden_size * p.intermediate_size * (p.op == Op::gate_up ? 2 : 1) * size_of(p.types.weights);
  }

  // The share of the multiprocessors' rounds that so many tiles fill.
  static double filled(std::int64_t tiles) {
    return tiles == 0
               ? 1.0
               : static_cast<double>(tiles) / static_cast<double>(ceil_div(tiles, multiprocessors) * multiprocessors);
  }

  // gemm of so few columns that three blocks or more divide the sums of each of sm90's tiles, in clusters of two
  // (sm90/parts.cuh): 2816 at most.
  static bool in_parts(const Problem& p) {
    return !p.weights_settled && 3 * ceil_div(p.intermediate_size, std::int64_t{128}) <= multiprocessors / 2;
  }

  // gemm of so few columns that sm90's tiles of 64, whose sums two blocks divide, are one round that leaves a tenth of
  // the multiprocessors idle at most. So are sm90_decode's low tiles: of 128 rows Llama 8B's down-projection, 4096
  // columns, is 32, two more than an H100 holds clusters of four.
  static bool in_halves(const Problem& p) {
    const std::int64_t blocks = 2 * ceil_div(p.intermediate_size, std::int64_t{64});
    return blocks <= multiprocessors && filled(blocks) >= 0.9;
  }

  // Whether decode's tiles of 16 rows fill its rounds.
  static bool fills_rounds_of_decode(const Problem& p) {
    return filled(ceil_div(p.intermediate_size, std::int64_t{16})) >= 0.9;
  }

  // Whether sm90_decode's tiles, of slabs of 64 rows or of 56, fill its rounds.
  static bool fills_rounds(const Problem& p) {
    constexpr std::array<std::int64_t, 2> slabs{64, 56};
    return std::ranges::any_of(slabs,
                               [&](std::int64_t slab) { return filled(ceil_div(p.intermediate_size, slab)) >= 0.9; });
  }

  // gemm whose tiles of 128 columns, the sums of each divided by four blocks of sm90_decode, are one round of the 30
  // clusters that an H100 holds, and which are not so few as to be summed in parts.
  static bool in_quarters(const Problem& p) {
    const std::int64_t tiles = ceil_div(p.intermediate_size, std::int64_t{128});
    return 22 < tiles && tiles <= 30;
  }

  // The fewest tokens for which sm90_decode is chosen. With large weights and 7 and 8 tokens it is the faster one, an
  // mlp of Llama 405B at 0.972 and 0.973 of reading, by decode 0.967 and 0.965; of 4096 columns decode is up to 12, an
  // mlp of Llama 8B 86.3 us, 86.9 (docs/kernels/decode_log.md).
  static std::int64_t first_of_sm90_decode(const Problem& p) {
    if (p.op == Op::gemm && in_halves(p)) return 13;
    return weight_bytes(p) >= 400 * megabyte ? 7 : first_beyond_decode;
  }

  // The fewest tokens for which sm90 is chosen.
  static std::int64_t first_of_sm90(const Problem& p) {
    const std::int64_t weights = weight_bytes(p);
    if (p.op == Op::gemm && in_parts(p)) {
      if (weights < 20 * megabyte) return 17;
      return fills_rounds_of_decode(p) ? first_beyond_decode : 1;
    }
    if (p.op == Op::gate_up && weights < 300 * megabyte) {
      const bool short_sums = p.hidden_size <= 2560;  // of which each tile has its beginning and end
      if (short_sums && weights >= 40 * megabyte) return first_beyond_decode;
      if (short_sums || !fills_rounds(p)) return 17;
    }
    return (p.op == Op::gemm && in_quarters(p)) || weights >= 1500 * megabyte ? 65 : 33;
  }
};

}  // namespace gatefold::cuda
