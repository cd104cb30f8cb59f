#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cute/tensor.hpp>

#include <type_traits>

#include "cuda/common/bias.cuh"
#include "cuda/common/combine.cuh"
#include "cuda/common/element.cuh"
#include "cuda/copy_engine/copies.cuh"
#include "cuda/sm90_decode/config.hpp"

// gate_up and gemm for few tokens on 9.0, bound by reading the weights once.
//
// A cluster of `split` blocks takes a tile; each block multiplies every part of the sums' terms that is its own, and
// then adds up and stores a part of the tile's outputs, in the order of the blocks. One thread asks the copy engine for
// weights and x as far ahead as the ring has slots, some 200 KB, through the tiles: a warpgroup multiplies.
//
// Weights of a slab that has fewer than 64 rows leave the rest of its place in the ring as it was: the sums of those
// rows are nobody's.
//
//     block 0   producer  | k 0 .. n-1 of tile 0 | of tile 1 ...
//               consumers |  wgmma k 0 .. n-1  | send | add, act, store | wgmma ...
//     block 1   consumers |  wgmma k n .. 2n-1 | send | add, act, store | wgmma ...
//
// Barriers, by block:
//     full[s]    1 arrival and a slot's bytes   the producer announces, the copy engine brings
//     empty[s]   4                              each consumer warp, when it has multiplied the slot
//     sent       1 arrival and the sums' bytes  its first thread announces; the consumers of all blocks send
//     read       4 split                        the consumer warps of all blocks, when they have added up
namespace gatefold::cuda::sm90_decode {

template <class Element>
using Operand = std::conditional_t<std::is_same_v<Element, __half>, cute::half_t, cute::bfloat16_t>;

// Shape: a type with `static constexpr Config config`, `static constexpr Product product` and `using Element`.
template <class Shape>
struct Arguments : DelaySeed {
  using Element = typename Shape::Element;

  CUtensorMap x;         // [T, D], boxes of tokens x 64
  CUtensorMap slabs[2];  // boxes of 64 rows x 64: gate's and up's, or of a single weight its own, twice
  Element* out = nullptr;
  std::int64_t ld_out = 0;
  Bias gate_bias, up_bias;  // [F]
  std::int32_t tokens = 0;
  std::int32_t columns = 0;  // F
  std::int32_t block = 0;    // rows of a half before the other begins (the layout's block)
  std::int32_t slab_rows = 0;
  std::int32_t k_steps = 0;  // ceil(D / tile_k)
  std::int32_t token_tiles = 0;
  std::int32_t tiles = 0;  // of weight rows and tokens
  std::int32_t split = 1;
  bool weights_settled = false;  // Operands::weights_settled
  ExactCombine combine;
};

template <class Shape>
struct Storage {
  static constexpr Config config = Shape::config;
  using Operand = sm90_decode::Operand<typename Shape::Element>;

  alignas(1024) Operand weights[config.stages()][Config::boxes][Config::rows * Config::box_k];
  alignas(1024) Operand x[config.stages()][Config::boxes][config.tokens * Config::box_k];
  alignas(16) float mailbox[config.mailbox_units()][Config::slabs][32][4];
  std::uint64_t full[config.stages()];
  std::uint64_t empty[config.stages()];
  std::uint64_t sent;
  std::uint64_t read;

  __device__ void init(int split) {
    for (int s = 0; s < config.stages(); ++s) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], Config::consumer_warps);
    }
    barrier_init(&sent, 1);
    barrier_init(&read, Config::consumer_warps * split);
    fence_barrier_init();
  }
};

// A place in the ring; the phase flips at each turn.
template <int stages>
struct RingPosition {
  int slot = 0;
  std::uint32_t phase = 0;

  __device__ void advance() {
    if (++slot == stages) {
      slot = 0;
      phase ^= 1;
    }
  }
};

// What a block has of every tile: its k-steps, and the tiles of its cluster.
template <class Shape>
class Block {
 public:
  static constexpr Config config = Shape::config;
  static constexpr Product product = Shape::product;
  using Element = typename Shape::Element;

  __device__ Block(const Arguments<Shape>& arguments, Storage<Shape>& storage)
      : p_(arguments),
        storage_(storage),
        rank_(static_cast<int>(cluster_rank())),
        steps_((p_.k_steps - rank_ + p_.split - 1) / p_.split),
        first_tile_(static_cast<int>(blockIdx.x) / p_.split),
        clusters_(static_cast<int>(gridDim.x) / p_.split) {}

  // By one thread.
  __device__ void produce() {
    int brought = begin_before_wait();
    wait_for_previous_grid();
    RingPosition<config.stages()> at;
    for (int tile = first_tile_; tile < p_.tiles; tile += clusters_) {
      const int token = tile % p_.token_tiles * config.tokens;
      for (int step = 0; step < steps_; ++step) {
        if (brought > 0) {
          --brought;
        } else {
          barrier_wait(&storage_.empty[at.slot], at.phase ^ 1);
          bring_weights(tile, step, at.slot);
        }
        bring_x(token, column_of(step), at.slot);
        at.advance();
      }
    }
    // Not before, or the next kernel's weights would be on their way to L2 while this one's still come.
    ptx::launch_next_grid();
  }

  // By a warpgroup.
  __device__ void consume() {
    wait_for_previous_grid();  // out may be read by it, and the biases written
    RingPosition<config.stages()> at;
    std::uint32_t phase = 0;  // of sent and read: one each tile
    for (int tile = first_tile_; tile < p_.tiles; tile += clusters_) {
      auto tCrC = cute::partition_fragment_C(
          TiledMma{}, cute::Shape<cute::Int<Config::rows>, cute::Int<config.tokens>>{});  // ((2, 2, groups), slabs, 1)
      multiply(at, tCrC);
      send(phase, tCrC);
      add_and_store(phase, tile);
      phase ^= 1;
    }
  }

 private:
  using Operand = sm90_decode::Operand<Element>;
  using Atom =
      decltype(cute::SM90::GMMA::ss_op_selector<Operand, Operand, float,
                                                cute::Shape<cute::Int<64>, cute::Int<config.tokens>, cute::Int<16>>>());
  static_assert(cute::size<1>(typename cute::MMA_Traits<Atom>::Shape_MNK{}) == config.tokens);
  using TiledMma = decltype(cute::make_tiled_mma(Atom{}));
  using SmemAtom = cute::SM90::GMMA::Layout_K_SW128_Atom<Operand>;
  template <int lines>
  using SmemLayout = decltype(cute::tile_to_shape(
      SmemAtom{},
      cute::Shape<cute::Int<lines>, cute::Int<Config::box_k>, cute::Int<Config::boxes * config.stages()>>{}));

  __device__ Division division() const { return {config.units(), p_.split}; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // The blocks of a cluster take the k-steps by turns, so that they read whole lines of memory's at about one time.
  __device__ int column_of(int step) const { return (step * p_.split + rank_) * Config::tile_k; }

  // Of the tile's first slab, in its half of the weights.
  __device__ int first_row(int tile) const { return tile / p_.token_tiles * tile_columns(product, p_.slab_rows); }

  // slab(which, row in the layout's block, repetition of the layout's pattern)
  template <class Slab>
  __device__ void for_each_slab(int row, Slab slab) const {
#pragma unroll
    for (int i = 0; i < Config::slabs; ++i) {
      const int mine = product == Product::gate_up ? row : row + i * p_.slab_rows;
      const int repetition = mine / p_.block;
      slab(i, mine - repetition * p_.block, repetition);
    }
  }

  // Announces all bytes of the slot, those of x too.
  __device__ void bring_weights(int tile, int step, int slot) {
    const std::uint64_t policy = ptx::evict_first_policy();
    const int k = column_of(step);
    barrier_expect_bytes(&storage_.full[slot],
                         (Config::slabs * p_.slab_rows + config.tokens) * Config::tile_k * Config::element_bytes);
    for_each_slab(first_row(tile), [&](int slab, int row_in_block, int repetition) {
#pragma unroll
      for (int box = 0; box < Config::boxes; ++box) {
        Operand* const to = storage_.weights[slot][box] + slab * Config::slab * Config::box_k;
        load_tile_3d(&p_.slabs[slab], &storage_.full[slot], to, k + box * Config::box_k, row_in_block, repetition,
                     policy);
      }
    });
  }

  __device__ void bring_x(int token, int k, int slot) {
#pragma unroll
    for (int box = 0; box < Config::boxes; ++box) {
      load_tile_2d(&p_.x, &storage_.full[slot], storage_.x[slot][box], k + box * Config::box_k, token);
    }
  }

  // The first tile's first slots, before the wait: weights that are settled come at once, and the number of their slots
  // is returned. Others begin their way to L2: what the kernel before still writes to them reaches L2 as well.
  __device__ int begin_before_wait() {
    if (first_tile_ >= p_.tiles) return 0;
    const int slots = min(steps_, config.stages());
    if (p_.weights_settled) {
      for (int step = 0; step < slots; ++step) bring_weights(first_tile_, step, step);
      return slots;
    }
    prefetch_weights(slots);
    return 0;
  }

  __device__ void prefetch_weights(int slots) const {
    for (int step = 0; step < slots; ++step) {
      for_each_slab(first_row(first_tile_), [&](int slab, int row_in_block, int repetition) {
        for (int box = 0; box < Config::boxes; ++box) {
          prefetch_tile_3d(&p_.slabs[slab], column_of(step) + box * Config::box_k, row_in_block, repetition);
        }
      });
    }
  }

  // tCrC = weight rows . x^T over this block's k-steps. One of them stays in flight.
  template <class Accumulator>
  __device__ void multiply(RingPosition<config.stages()>& at, Accumulator& tCrC) {
    using namespace cute;
    auto sA = make_tensor(make_smem_ptr(storage_.weights[0][0]),
                          SmemLayout<Config::rows>{});  // (rows, box_k, stages x boxes)
    auto sB =
        make_tensor(make_smem_ptr(storage_.x[0][0]), SmemLayout<config.tokens>{});  // (tokens, box_k, stages x boxes)
    TiledMma tiled_mma;
    auto thr_mma = tiled_mma.get_slice(0);
    auto tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, slabs, mma_k, stages x boxes): descriptors
    auto tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));  // (mma, 1, mma_k, stages x boxes): descriptors

    tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::Zero;
    int before = -1;
    for (int step = 0; step < steps_; ++step) {
      barrier_wait(&storage_.full[at.slot], at.phase);
      warpgroup_fence_operand(tCrC);
      warpgroup_arrive();
#pragma unroll
      for (int box = 0; box < Config::boxes; ++box) {
        const int place = at.slot * Config::boxes + box;
#pragma unroll
        for (int k = 0; k < size<2>(tCrA); ++k) {
#pragma unroll
          for (int slab = 0; slab < Config::slabs; ++slab) {
            cute::gemm(tiled_mma, tCrA(_, slab, k, place), tCrB(_, 0, k, place), tCrC(_, slab, 0));
          }
          tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::One;
        }
      }
      warpgroup_commit_batch();
      warpgroup_wait<1>();
      warpgroup_fence_operand(tCrC);
      if (before >= 0) release(before);
      before = at.slot;
      at.advance();
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(tCrC);
    release(before);
  }

  __device__ void release(int slot) {
    __syncwarp();
    if (lane() == 0) barrier_arrive(&storage_.empty[slot]);
  }

  // Each unit's sums to the block that adds them up, whose consumers have read what they had before.
  template <class Accumulator>
  __device__ void send(std::uint32_t phase, const Accumulator& tCrC) {
    if (p_.split == 1) return keep(tCrC);
    const Division d = division();
    barrier_wait_for_cluster(&storage_.read, phase ^ 1);
#pragma unroll
    for (int group = 0; group < config.groups(); ++group) {
      const int unit = warp() * config.groups() + group;
      const int to = d.block_of(unit);
      const int place = rank_ * d.most() + unit - d.first(to);
#pragma unroll
      for (int slab = 0; slab < Config::slabs; ++slab) {
        const auto value = [&](int i) { return tCrC(cute::make_coord(i % 2, i / 2, group), slab, 0); };
        store_remote(storage_.mailbox[place][slab][lane()], &storage_.sent, static_cast<std::uint32_t>(to), value(0),
                     value(1), value(2), value(3));
      }
    }
  }

  // The same where the block has all terms: the warps have come together at the tile before's end.
  template <class Accumulator>
  __device__ void keep(const Accumulator& tCrC) {
#pragma unroll
    for (int group = 0; group < config.groups(); ++group) {
#pragma unroll
      for (int slab = 0; slab < Config::slabs; ++slab) {
        const auto value = [&](int i) { return tCrC(cute::make_coord(i % 2, i / 2, group), slab, 0); };
        *reinterpret_cast<float4*>(storage_.mailbox[warp() * config.groups() + group][slab][lane()]) = {
            value(0), value(1), value(2), value(3)};
      }
    }
  }

  __device__ void add_and_store(std::uint32_t phase, int tile) {
    const Division d = division();
    const int first = d.first(rank_);
    const int count = d.count(rank_);
    if (p_.split == 1) {
      consumers_sync();
    } else {
      if (threadIdx.x == 0) barrier_expect_bytes(&storage_.sent, p_.split * count * Config::unit_bytes);
      barrier_wait_for_cluster(&storage_.sent, phase);
    }
    p_.combine.dispatch([&](auto act) {
#pragma unroll 1
      for (int i = warp(); i < count; i += Config::consumer_warps) {
        float sums[Config::slabs][4] = {};
        for (int from = 0; from < p_.split; ++from) add(storage_.mailbox[from * d.most() + i], sums);
        store(tile, first + i, sums, act);
      }
    });
    if (p_.split == 1) return consumers_sync();
    __syncwarp();  // all lanes have read: the others may send again
    if (lane() < p_.split) barrier_release_remote(&storage_.read, static_cast<std::uint32_t>(lane()));
  }

  static __device__ void consumers_sync() {
    delay();
    asm volatile("bar.sync 1, %0;" ::"n"(32 * Config::consumer_warps) : "memory");
    delay();
  }

  __device__ void add(const float (&unit)[Config::slabs][32][4], float (&sums)[Config::slabs][4]) const {
#pragma unroll
    for (int slab = 0; slab < Config::slabs; ++slab) {
      const float4 v = *reinterpret_cast<const float4*>(unit[slab][lane()]);
      sums[slab][0] += v.x;
      sums[slab][1] += v.y;
      sums[slab][2] += v.z;
      sums[slab][3] += v.w;
    }
  }

  // sums[slab][i]: of token 2 (lane % 4) + i % 2 of the unit's eight, and row lane / 4 + 8 (i / 2) of its 16.
  template <class Act>
  __device__ void store(int tile, int unit, float (&sums)[Config::slabs][4], Act act) const {
    const int row = unit / config.groups() * 16 + lane() / 4;  // of the slab
    const int token = tile % p_.token_tiles * config.tokens + unit % config.groups() * 8 + lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + 8 * half >= p_.slab_rows) continue;
      const int column = first_row(tile) + row + 8 * half;
      if constexpr (product == Product::gate_up) {
        if (column >= p_.columns) continue;
        const auto gate = [&](int i) { return p_.gate_bias.template add_to<Element>(sums[0][2 * half + i], column); };
        const auto up = [&](int i) { return p_.up_bias.template add_to<Element>(sums[1][2 * half + i], column); };
        const Pair h = act(gate(0), up(0), gate(1), up(1));
        store_pair(token, column, h.low, h.high);
      } else {
#pragma unroll
        for (int slab = 0; slab < Config::slabs; ++slab) {
          const int at = column + slab * p_.slab_rows;
          if (at >= p_.columns) continue;
          const auto sum = [&](int i) { return p_.up_bias.template add_to<Element>(sums[slab][2 * half + i], at); };
          store_pair(token, at, sum(0), sum(1));
        }
      }
    }
  }

  // Of two neighbouring tokens.
  __device__ void store_pair(int token, int column, float first, float second) const {
    Element* const out = p_.out + token * p_.ld_out + column;
    if (token < p_.tokens) out[0] = from_float<Element>(first);
    if (token + 1 < p_.tokens) out[p_.ld_out] = from_float<Element>(second);
  }

  const Arguments<Shape>& p_;
  Storage<Shape>& storage_;
  int rank_;
  int steps_;
  int first_tile_;
  int clusters_;
};

template <class Shape>
__global__ __launch_bounds__(Config::threads, 1) void kernel(const __grid_constant__ Arguments<Shape> arguments) {
  static_assert(sizeof(Storage<Shape>) <= Shape::config.shared_bytes());
  // The swizzle repeats every 1024 bytes of the shared window, so the ring must begin at a multiple of that.
  extern __shared__ __align__(1024) std::byte raw[];
  if (shared_address(raw) % 1024 != 0) __trap();
  auto& storage = *reinterpret_cast<Storage<Shape>*>(raw);

  begin_delays(arguments);
  if (threadIdx.x == 0) {
    prefetch_descriptor(&arguments.x);
    prefetch_descriptor(&arguments.slabs[0]);
    prefetch_descriptor(&arguments.slabs[1]);
    storage.init(arguments.split);
  }
  __syncwarp();
  cluster_sync();
  Block<Shape> block(arguments, storage);
  if (threadIdx.x < 32 * Config::consumer_warps) {
    block.consume();
  } else if (threadIdx.x == 32 * Config::consumer_warps) {
    block.produce();
  }
  // A block must outlive what its peers send it: sums and arrivals.
  __syncwarp();
  cluster_sync();
}

}  // namespace gatefold::cuda::sm90_decode
