#pragma once

#include <cstdint>

#include "core/arithmetic.hpp"
#include "core/problem.hpp"

// Who takes few tokens on compute capability 9.0: decode the fewest where its tiles fill their rounds, sm90_decode
// beyond, and sm90 from some number on, which hangs on the weights. Measured on H200s, a whole mlp or its products of
// 41 sizes with 1 to 64 tokens (docs/kernels/decode_log.md, docs/kernels/sm90_down_log.md).
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

  // gemm of so few columns that three blocks or more can divide the sums of each of sm90's tiles of 128, 22 at most.
  static bool has_few_columns(const Problem& p) { return 3 * tiles_of_128(p) <= multiprocessors / 2; }

  // Of these those that sm90 sums in parts (sm90/parts.cuh).
  static bool in_parts(const Problem& p) { return !p.weights_settled && has_few_columns(p); }

  // gemm of so few columns that sm90's tiles of 64, whose sums two blocks divide, are one round that leaves a tenth of
  // the multiprocessors idle at most. So are sm90_decode's low tiles: of 128 rows Llama 8B's down-projection, 4096
  // columns, is 32, two more than an H100 holds clusters of four.
  static bool in_halves(const Problem& p) {
    const std::int64_t blocks = 2 * ceil_div(p.intermediate_size, std::int64_t{64});
    return blocks <= multiprocessors && filled(blocks) >= 0.9;
  }

  static std::int64_t tiles_of_128(const Problem& p) { return ceil_div(p.intermediate_size, std::int64_t{128}); }

  // How full the rounds of decode's tiles are, of 16 columns of gemm.
  static double filled_by_decode(const Problem& p) { return filled(ceil_div(p.intermediate_size, std::int64_t{16})); }

  // gemm whose tiles of 128 columns, the sums of each divided by four blocks of sm90_decode, are one round, and which
  // are not so few as to be summed in parts.
  static bool in_quarters(const Problem& p) { return !has_few_columns(p) && tiles_of_128(p) <= clusters_of_four; }

  // The fewest tokens for which sm90_decode is chosen, where sm90 does not take over at once.
  static std::int64_t first_of_sm90_decode(const Problem& p) {
    return p.op == Op::gemm ? first_beyond_decode_of_gemm(p) : first_beyond_decode_of_gate_up(p);
  }

  // The fewest tokens for which sm90 is chosen.
  static std::int64_t first_of_sm90(const Problem& p) {
    return p.op == Op::gemm ? first_of_sm90_of_gemm(p) : first_of_sm90_of_gate_up(p);
  }

 private:
  static constexpr std::int64_t clusters_of_four = 30;  // that an H100 holds
  static constexpr std::int64_t short_sums = 1536;      // terms, twelve of decode's sixteen warps'

  static std::int64_t tiles_of_32(const Problem& p) { return ceil_div(p.intermediate_size, std::int64_t{32}); }

  // gemm of which sm90_decode's clusters, of four blocks up to 30 tiles of 128 columns and of two beyond, leave a fifth
  // of the multiprocessors idle: 5120 columns are 80 blocks. sm90's parts fill them: an mlp of Qwen3 14B takes 127.8 us
  // with 12 tokens and 128.5 with 24, by sm90_decode 129.7 and 130.7.
  static bool clusters_leave_many_idle(const Problem& p) {
    const std::int64_t blocks = (in_quarters(p) ? 4 : 2) * tiles_of_128(p);
    return !p.weights_settled && !in_halves(p) && blocks <= multiprocessors && filled(blocks) < 0.8;
  }

  // gate_up of so few columns that sm90's narrowest tiles are half of a round at most, or a third where decode has less
  // than its sixteen warps' terms: decode's tiles are smaller and more, and sm90_decode divides the sums. An mlp of an
  // expert of Qwen3 30B (2048 x 768) with 16 tokens takes 8.2 us by decode and 9.2 by sm90_decode, with 32 tokens 10.0
  // by that and 12.7 by sm90; one of Qwen3 235B (4096 x 1536) 16.5, 16.7, 17.4 and 20.3.
  static bool has_few_tiles(const Problem& p) { return tiles_of_32(p) <= (p.hidden_size > short_sums ? 66 : 48); }

  // By tiles of 64 tokens: an mlp of Llama 1B with 12 tokens takes 28.3 us by them and 29.0 by decode, one of DeepSeek
  // V3's expert 28.0 with 17, 31.1 by sm90_decode. From 300 MB on sm90_decode is as fast or faster, but where tiles of
  // 56 columns fill their rounds: Llama 70B with 17 tokens takes 316.3 us, 321.2 by sm90_decode. decode has sixteen
  // warps of 128 terms each, of which shorter sums leave some idle: Qwen2.5 1.5B with one token 25.2 us, 24.2 by sm90.
  static std::int64_t first_of_sm90_of_gate_up(const Problem& p) {
    const std::int64_t weights = weight_bytes(p);
    if (has_few_tiles(p)) return p.hidden_size > short_sums && tiles_of_32(p) <= 48 ? 65 : 17;
    if (p.hidden_size <= short_sums) return weights < 12 * megabyte ? 5 : 1;
    const bool fills_rounds = filled(ceil_div(p.intermediate_size, std::int64_t{56})) >= 0.93;
    if (weights < 300 * megabyte || (weights < 1000 * megabyte && fills_rounds)) return first_beyond_decode;
    return weights < 1500 * megabyte ? 33 : 49;
  }

  // gemm of so short sums that decode keeps it up to 16 tokens, even after a gate_up by sm90: an mlp of gpt-oss-20b
  // (2880 x 2880) with 16 takes 17.8 us so, 18.7 by sm90 twice, 20.5 by sm90 and sm90_decode. Of more bytes none was
  // measured.
  static bool has_short_sums(const Problem& p) { return p.hidden_size <= 3072 && weight_bytes(p) < 30 * megabyte; }

  // Parts of less than four k-steps each are none: the expert of Qwen3 30B with 17 tokens takes 9.6 us by sm90_decode,
  // 10.5 by parts of 768 terms.
  static std::int64_t first_of_sm90_of_gemm(const Problem& p) {
    const std::int64_t weights = weight_bytes(p);
    if (p.hidden_size >= 1024 && (in_parts(p) || clusters_leave_many_idle(p))) {
      return weights >= 20 * megabyte || has_short_sums(p) ? first_beyond_decode_of_gemm(p) : first_beyond_decode;
    }
    return in_quarters(p) || weights >= 1500 * megabyte ? 65 : 33;
  }

  // The products of an mlp change over together: after decode, decode is the faster one, though alone it may be slower
  // (Llama 3B's down-projection with one token 16.1 us, sm90_decode 14.9; its mlp 37.6 us, and 39.4 with that).
  static std::int64_t first_by_bytes(const Problem& p) {
    return weight_bytes(p) >= 400 * megabyte ? 7 : first_beyond_decode;
  }

  // Where decode's tiles leave a tenth of their rounds empty, from 5 on: an mlp of DeepSeek V3's dense layers with 8
  // tokens takes 182.3 us by sm90_decode's in place of 186.2, one of Qwen3 14B 126.1 by sm90's parts, and 131.9 by
  // sm90_decode's. Of few columns from one token on: Qwen3 4B 39.6 us by parts, 40.5 by sm90_decode's, 41.1 by
  // decode's.
  static std::int64_t first_beyond_decode_of_gemm(const Problem& p) {
    if (has_short_sums(p)) return most_tokens_of_decode + 1;
    if (weight_bytes(p) < 16 * megabyte || filled_by_decode(p) >= 0.9 || in_quarters(p)) {
      return first_by_bytes(p);
    }
    return has_few_columns(p) && weight_bytes(p) >= 20 * megabyte ? 1 : 5;
  }

  // decode keeps x in registers, of eight tokens of up to 8192 terms: with 8 tokens Llama 70B's gate_up takes 206.8 us,
  // sm90_decode's 210.8.
  static std::int64_t first_beyond_decode_of_gate_up(const Problem& p) {
    if (has_few_tiles(p)) return most_tokens_of_decode + 1;
    return p.hidden_size <= 8192 ? first_beyond_decode : first_by_bytes(p);
  }
};

}  // namespace gatefold::cuda
