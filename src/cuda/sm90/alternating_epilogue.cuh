#pragma once

#include "cuda/sm90/epilogue.cuh"

namespace gatefold::cuda::sm90 {

// gate_up by swap-AB where eight weight rows of gate and eight of up come by turns (Config::alternating): of each slab
// of 64 rows warp w of a warpgroup has 8 of either, and a thread for every eight tokens two of column 8w + r of gate
// and, eight rows further, the same two of up, r being a fourth of its lane.
//
//     rows of a slab     0..7    8..15   16..23   24..31   ..        or up before gate, as they lie in memory
//                        gate    up      gate     up
//     warp               0       0       1        1        ..
//     columns            0..7    0..7    8..15    8..15    ..
//
// A slab's 32 columns are staged in rows of 64 bytes, a token each, which are swizzled as the store's descriptor says:
// 16-byte piece p of row r lies at piece p ^ (r / 2 % 4). A transposing stmatrix turns them on their way there. They
// leave store_rows tokens at a time; where those do not divide the tile's, the last ones begin earlier, and what was
// stored before is stored once more, the same.
template <Config config, class Element>
struct AlternatingEpilogue : NoInputs {
  static constexpr int chunk = 32;
  static constexpr Swizzle swizzle = Swizzle::bytes_64;
  static constexpr int store_rows = config.staged_tokens();
  static constexpr int pieces = config.staged_pieces();
  static_assert(config.swap_ab && config.product == Product::gate_up && store_rows % 8 == 0);

  struct alignas(512) Storage {  // after which the swizzle repeats
    Element out[config.store_bytes() / sizeof(Element)];
  };

  struct Arguments : GateUpArguments::Arguments {
    bool up_first;
  };

  template <class Encode>
  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands, Encode encode) {
    const HalfView gate = half_view(problem, operands, Half::gate);
    const HalfView up = half_view(problem, operands, Half::up);
    arguments.up_first = up.base == gate.base ? up.map.first < gate.map.first : up.base < gate.base;
    return GateUpArguments::fill(arguments, problem, operands, encode);
  }

  // To tCrC ((2, 2, tile_m / 8), slabs, 1): per eight tokens, two of the first half's column and two of the second's.
  // Inlined at any length, as store(): the accumulators would leave their registers for a call.
  template <class Accumulator>
  static __device__ __forceinline__ void add_biases(const Arguments& arguments, const Tile& tile, int thread,
                                                    Accumulator& tCrC) {
    if (!arguments.gate_bias.is_there() && !arguments.up_bias.is_there()) return;
    ptx::wait_for_previous_grid();  // which may have written them; it has ended, as its x came through the ring
    const TileBias& first = arguments.up_first ? arguments.up_bias : arguments.gate_bias;
    const TileBias& second = arguments.up_first ? arguments.gate_bias : arguments.up_bias;
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      const auto column =
          static_cast<std::uint32_t>(first_column(tile, thread, slab) + thread % 128 / 32 * 8 + thread % 32 / 4);
      const float bias[2] = {first.is_there() ? first.template at<Stored<Element>>(column) : 0.0F,
                             second.is_there() ? second.template at<Stored<Element>>(column) : 0.0F};
#pragma unroll
      for (int group = 0; group < config.warpgroup_tokens() / 8; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) tCrC(cute::make_coord(i % 2, i / 2, group), slab, 0) += bias[i / 2];
      }
    }
  }

  template <class Accumulator>
  static __device__ __forceinline__ void store(const CUtensorMap& out, const Arguments& arguments, const Tile& tile,
                                               int tile_slabs, Storage& storage, Inputs& /*inputs*/, int thread,
                                               const Accumulator& tCrC) {
    using namespace cute;
    const int warpgroup = thread / 128;
    const bool up_first = arguments.up_first;
    const int first_token = config.tokens_divided ? warpgroup * config.warpgroup_tokens() : 0;
    // Of a token a thread has one column of a slab, and what two tokens shared a row's bits would depend on.
    arguments.combine.template dispatch<Reciprocals::own>([&](auto act) {
#pragma unroll
      for (int slab = 0; slab < config.slabs(); ++slab) {
#pragma unroll
        for (int of_slab = 0; of_slab < config.pieces_of_a_slab(); ++of_slab) {
          if (first_token + of_slab * store_rows >= tile.tokens || (config.may_narrow() && slab >= tile_slabs)) break;
          const int token = min(of_slab * store_rows, config.warpgroup_tokens() - store_rows);
          const int piece = slab * config.pieces_of_a_slab() + of_slab;
          Element* mine = storage.out + (piece % pieces * config.warpgroups + warpgroup) * store_rows * chunk;
          if (piece % pieces == 0) {  // what was staged before has left
            by_copying_thread([] { store_wait_read(); });
            named_barrier_sync(first_store_barrier + warpgroup, 128);
          }
          stage(shared_address(mine), thread, [&](int group) {
            const auto value = [&](int i, bool second) {
              const auto of = [&](int half) { return tCrC(make_coord(i, half, token / 8 + group), slab, 0); };
              return second ? of(1) : of(0);
            };
            return act(value(0, up_first), value(0, !up_first), value(1, up_first), value(1, !up_first));
          });
          fence_async_shared();
          named_barrier_sync(first_store_barrier + warpgroup, 128);
          by_copying_thread([&] {
            store_tile_2d(&out, mine, first_column(tile, thread, slab), tile.first_row + first_token + token);
            store_commit();
          });
        }
      }
    });
  }

 private:
  static __device__ int first_column(const Tile& tile, int thread, int slab) {
    const int warpgroup = config.row_warpgroups() == 1 ? 0 : thread / 128;
    return tile.template column<config>() + (slab * config.row_warpgroups() + warpgroup) * chunk;
  }

  // store_rows tokens of the warpgroup's 32 columns. pair_of(group): the thread's two of eight tokens. Lane l gives the
  // address of row l % 8, a token, of matrix l / 8, and matrices follow each other token after token.
  template <class PairOf>
  static __device__ void stage(std::uint32_t base, int thread, PairOf pair_of) {
    const std::uint32_t lane = thread % 32;
    const std::uint32_t piece = thread % 128 / 32;
    const std::uint32_t address = base + lane * 64 + (piece ^ lane / 2 % 4) * 16;
    const auto packed = [&](int group) {
      const Pair pair = pair_of(group);
      return pack<Element>(pair.low, pair.high);
    };
    constexpr int groups = store_rows / 8;
    constexpr int fours = groups / 4 * 4;
#pragma unroll
    for (int group = 0; group < fours; group += 4) {
      store_matrices_transposed(address + group * 512, packed(group), packed(group + 1), packed(group + 2),
                                packed(group + 3));
    }
    if constexpr (groups % 4 >= 2) {
      store_matrices_transposed(address + fours * 512, packed(fours), packed(fours + 1));
    }
    if constexpr (groups % 2 == 1) store_matrices_transposed(address + (groups - 1) * 512, packed(groups - 1));
  }
};

}  // namespace gatefold::cuda::sm90
