#pragma once

#include <cstddef>

#include "cuda/sm90/chain.hpp"
#include "cuda/sm90/chain_epilogue.cuh"
#include "cuda/sm90/family.cuh"
#include "cuda/sm90/wide_sum.cuh"

// Several MLPs, one after the other, in one launch: gate_up, down, gate_up, down, .. of products that are one round of
// tiles each, so that a block has one tile of either, the same in every MLP. 512 rows, D = 1024, F = 4096: 64 clusters
// of two.
//
//   gate_up   128x256, the blocks of a cluster share the weights     4 x 32 tiles, one of each block
//   down      128x64, the blocks of a cluster divide the sums        4 x 16 tiles, one of each cluster
//
// What a launch for each product would pay at its beginning and its end (barriers, descriptors, an empty ring, blocks
// that wait for the last one) is paid once. Where a product ends, only this is waited for:
//
//   weights' threads | gate_up's k-steps ...     | down's first 8, as soon as the ring is drained | the others
//   tokens' thread   | s: k-steps ...            | h_stored[m]? ........................ | h: k-steps ...
//   scales' warp     | 1/rms of the tile's rows  | s_stored[m]? .. (of the next gate_up)
//   warpgroups       | wgmma ............. | silu, h -> memory, waits, h_stored[m] += 1  | wgmma ...
//
//   weights' threads | down's k-steps ...        | gate_up's first 4, when the sums are together | the others
//   tokens' thread   | h: k-steps ...            | s_stored[m]? ........................ | s: k-steps ...
//   warpgroup r      | wgmma ............. | other's sums, s and squares -> memory, waits, s_stored[m] += 1 | wgmma ..
//   warpgroup 1 - r  | wgmma ............. | own sums -> other block                                        | wgmma ..
//
// Dependences are of row blocks of 128 rows, by counters in memory: of h_stored[m] all tiles of gate_up's row m, one by
// each warpgroup that has rows there, of s_stored[m] the same of down's. They grow from MLP to MLP, and the step's
// first kernel zeroes them. Release and acquire: a copy engine's store is complete, and the rows' squares are written,
// before its thread adds to a counter; the thread that has seen the count puts a proxy fence before its requests.
//
// Nobody overwrites what is still read. h of row block m is stored again by tiles whose x, s of row block m, was
// complete: by then all of down's tiles of that row had multiplied all of its h. s likewise: down's tiles of row m
// store when h of row m is complete, and so gate_up's tiles have multiplied all of its s, and have scaled by its
// squares.
//
// Every block waits for others, so all of them are on the device at a time: the launch is cooperative.
//
// Both products use the same shared memory, each with a ring, positions and barriers of its own that simply go on in
// the next MLP. What changes hands between them:
//
//   slots                 gate_up's four of 48 KB | down's eight of 24 KB
//   the staging buffer    gate_up's: warpgroup 0's half, 1's | down's one of 8 KB, a gap, the mailbox of 16 KB
//
// Barriers beside those of docs/kernels/sm90_barriers.md, in each block. In a cluster without a tile of one product
// nothing changes hands, and the first three are not used:
//
//   barrier         arrivals of a phase                      who waits
//   drained         8 consumer warps that have multiplied,   the 3 producer warps, before they request for the next
//                   3 producer warps that have requested;   product: nobody reads or awaits a slot of the one before
//                   one phase a product
//   peer_drained    8 consumer warps of the other block      the warp that brings gate_up's weights for both, of
//                   that have multiplied down                which the other block's slots receive a copy
//   idle            2 threads of the other block's           the warpgroup that sends its sums, before it does: h has
//                   warpgroups, whose h is in memory         left the place of the other block's mailbox
//   scaled          32 of the scales' warp, once an MLP      warpgroups with rows, before they scale: 1/rms is there
//   scales_read     warpgroups with rows, when gate_up is    the scales' warp: 1/rms is read, and the next may take
//   (named)         staged, and the scales' warp             its place
//   round (named)   256 consumers, after each MLP            the same: sums and s have left the place of the next h
//
// No phase is missed and none runs ahead. drained: a phase's 11 arrivals are of those who need the one before to have
// passed: producer warps waited for it, and consumers multiplied what these have then requested. peer_drained: the
// other block multiplies the next down only after the next gate_up, whose weights the waiting warp brings. idle: the
// next MLP's arrivals come after the round's barrier, and so after the message was received that waited for this one's.
// scaled: the next MLP's arrivals come after scales_read.
namespace gatefold::cuda::sm90 {

template <class GateUp, class Down>
struct ChainArguments : DelaySeed {
  sm90::Arguments<GateUp> gate_up;
  sm90::Arguments<Down> down;
  ChainState state;
  const float* inverse_rms;
  double eps_squares;     // eps times the columns
  float root_of_columns;  // sqrt(columns)
  std::uint32_t first_mlp;
  int mlps;
};

template <class GateUp, class Down>
struct ChainStorage {
  using Element = typename GateUp::Element;
  using Mailbox = typename Down::Reduction::Storage;

  // The mailbox's barriers lie behind all that gate_up stages.
  struct StagedDown {
    typename Down::Epilogue::Storage out;
    std::byte gap[sizeof(typename GateUp::Epilogue::Storage) - sizeof(typename Down::Epilogue::Storage) -
                  sizeof(Mailbox::values)];
    Mailbox mailbox;
  };
  static_assert(offsetof(Mailbox, sent) == sizeof(Mailbox::values));

  union {
    Slots<GateUp::config, Element> gate_up;
    Slots<Down::config, Element> down;
  } slots;
  union {
    typename GateUp::Epilogue::Storage gate_up;
    StagedDown down;
  } staging;
  Ring<GateUp::config> gate_up_ring;
  Ring<Down::config> down_ring;
  std::uint64_t drained;
  std::uint64_t peer_drained;
  std::uint64_t idle;
  std::uint64_t scaled;
  float inverse_rms[GateUp::config.tile_m];
};

inline constexpr int round_barrier = first_pingpong_barrier;  // no ping-pong here
inline constexpr int scales_read_barrier = round_barrier + 1;

// ---- counters ----

// After what this thread has stored, or knows to be stored.
__device__ inline void count(std::uint32_t* counter) {
  delay();
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}

__device__ inline void wait_for_count(const std::uint32_t* counter, std::uint32_t least) {
  std::uint32_t seen = 0;
  delay();
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  } while (static_cast<std::int32_t>(seen - least) < 0);
  delay();
}

// ---- a block's part of one of the two products ----

template <class Shape>
class ChainProduct {
 public:
  static constexpr Config config = Shape::config;
  using Element = typename Shape::Element;
  using Mainloop = typename Shape::Mainloop;

  __device__ ChainProduct(const Arguments<Shape>& arguments, Slots<config, Element>& slots, Ring<config>& ring)
      : arguments_(arguments), slots_(slots), ring_(ring) {
    const TileScheduler<config> scheduler(arguments.geometry, place_);
    has_tile_ = !scheduler.done();
    if (has_tile_) tile_ = scheduler.tile();
  }

  __device__ const ClusterPlace<config>& place() const { return place_; }
  __device__ bool has_tile() const { return has_tile_; }
  __device__ const Tile& tile() const { return tile_; }

  // Those of the tile's row that store each of its tiles: warpgroups with rows.
  static __device__ std::uint32_t writers(const Tile& tile) {
    return (tile.tokens > 0 ? 1 : 0) + (tile.tokens > 64 ? 1 : 0);
  }
  static __device__ int counter_of(const Tile& tile) { return tile.first_row / config.tile_m * ChainState::apart; }
  // Arrivals at the row's counter when so many MLPs have stored its tiles.
  __device__ std::uint32_t arrivals(const Tile& tile, std::uint32_t mlps) const {
    return mlps * static_cast<std::uint32_t>(arguments_.geometry.n_tiles) * writers(tile);
  }

  __device__ bool brings_something(Load part) const { return loader_of(part).brings_something(); }

  // By the producer warp of a load: all k-steps of the tile. Tokens come when wait() has returned.
  template <class Wait>
  __device__ void request(Load part, Wait wait) {
    const Loader<config, Element> loader = loader_of(part);
    const TileBoxes boxes = loader.boxes_of(tile_);
    if (loader.brings_tokens()) {
      wait();
      ring_.for_each_step(arguments_.geometry.k_steps, position_, [&](int step, int slot) {
        if (elect_one()) loader.bring_tokens(boxes, step, slot, slots_, &ring_.full[slot]);
      });
    } else {
      ring_.for_each_step(arguments_.geometry.k_steps, position_, [&](int step, int slot) {
        if (!elect_one()) return;
        loader.bring_strip(boxes, step, slot, slots_, &ring_.full[slot], ptx::mostly_kept_policy());
        barrier_arrive(&ring_.full[slot]);
      });
    }
  }

  // By a consumer warpgroup.
  template <class Accumulator>
  __device__ __forceinline__ void multiply(int warpgroup, Accumulator& tCrC) {
    const auto nothing = [](const auto& /*where*/, int /*step*/) {};
    if (tile().template slabs_of<config>(warpgroup) > 0) {
      Mainloop::template multiply<1>(arguments_.geometry, slots_, ring_, place_, position_, warpgroup, tCrC, nothing);
    } else {
      Mainloop::skip_tile(arguments_.geometry, ring_, place_, position_, nothing);
    }
  }

  static __device__ __forceinline__ auto accumulators() {
    return cute::partition_fragment_C(typename Mainloop::TiledMma{},
                                      cute::Shape<cute::Int<Mainloop::rows>, cute::Int<Mainloop::columns>>{});
  }

 private:
  __device__ Loader<config, Element> loader_of(Load part) const {
    return {part, arguments_.loads, arguments_.geometry, place_};
  }

  const Arguments<Shape>& arguments_;
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
  const ClusterPlace<config> place_;
  bool has_tile_;
  Tile tile_{};
  RingPosition<config.stages> position_;
};

// ---- what the threads of a block do ----

template <class GateUp, class Down>
class ChainBlock {
 public:
  using Storage = ChainStorage<GateUp, Down>;
  using Args = ChainArguments<GateUp, Down>;
  static constexpr int consumer_warps = 4 * GateUp::config.warpgroups;

  __device__ ChainBlock(const Args& arguments, Storage& storage)
      : arguments_(arguments),
        storage_(storage),
        gate_up_(arguments.gate_up, storage.slots.gate_up, storage.gate_up_ring),
        down_(arguments.down, storage.slots.down, storage.down_ring) {}

  // By one thread, before anything else.
  static __device__ void init(Storage& storage) {
    storage.gate_up_ring.init();
    storage.down_ring.init();
    Down::Reduction::init(storage.staging.down.mailbox);
    barrier_init(&storage.drained, consumer_warps + loads_per_step);
    barrier_init(&storage.peer_drained, consumer_warps);
    barrier_init(&storage.idle, GateUp::config.warpgroups);
    barrier_init(&storage.scaled, 32);
    fence_barrier_init();
  }

  // By the fourth of the producers' warps.
  __device__ void scale() {
    if (!gate_up_.has_tile()) return;
    const Tile tile = gate_up_.tile();
    if (tile.tokens <= 0) return;
    const auto lane = static_cast<int>(threadIdx.x % 32);
    wait_for_previous_grid();
    for (int round = 0; round < arguments_.mlps; ++round) {
      if (round > 0) {
        if (lane == 0) wait_for_s(tile, round);
        __syncwarp();
      }
      for (int row = lane; row < GateUp::config.tile_m; row += 32) {
        if (row < tile.tokens) storage_.inverse_rms[row] = inverse_rms(tile.first_row + row, round);
      }
      barrier_arrive(&storage_.scaled);
      __syncwarp();
      named_barrier_sync(scales_read_barrier, scales_read_threads(tile));
    }
  }

  // By the other three, of which the elected lanes request and arrive.
  __device__ void produce(Load part) {
    const bool tokens = part == Load::tokens;
    const bool brings_gate_up = gate_up_.has_tile() && gate_up_.brings_something(part);
    if (tokens) wait_for_previous_grid();
    for (int round = 0; round < arguments_.mlps; ++round) {
      if (round > 0 && overlaid()) {
        barrier_wait(&storage_.drained, 1);
        if (brings_gate_up && !tokens) barrier_wait(&storage_.peer_drained, (round - 1) & 1);
      }
      if (brings_gate_up) {
        gate_up_.request(part, [&] {
          if (round == 0) return;
          wait_for_s(gate_up_.tile(), round);
          fence_async_global();
        });
      }
      if (overlaid()) {
        if (elect_one()) barrier_arrive(&storage_.drained);
        barrier_wait(&storage_.drained, 0);
      }
      if (down_.has_tile()) {
        down_.request(part, [&] {
          wait_for_h(down_.tile(), round);
          fence_async_global();
        });
      }
      if (overlaid() && elect_one()) barrier_arrive(&storage_.drained);
    }
  }

  __device__ __forceinline__ void consume() {
    const int warpgroup = uniform(static_cast<int>(threadIdx.x) / 128);
    for (int round = 0; round < arguments_.mlps; ++round) {
      if (gate_up_.has_tile()) gate_up(warpgroup);
      if (down_.has_tile()) down(warpgroup);
      named_barrier_sync(round_barrier, 32 * consumer_warps);
      ++rounds_;
    }
  }

 private:
  __device__ bool overlaid() const { return gate_up_.has_tile() && down_.has_tile(); }

  // The scales' warp and the warpgroups with rows.
  static __device__ int scales_read_threads(const Tile& tile) {
    return 32 + 128 * static_cast<int>(ChainProduct<GateUp>::writers(tile));
  }

  // s of the row block as the MLPs before round `round` left it, and h as those before and the round's own.
  __device__ void wait_for_s(const Tile& tile, int round) const {
    wait_for_count(arguments_.state.s_stored + gate_up_.counter_of(tile),
                   down_.arrivals(tile, arguments_.first_mlp + round));
  }
  __device__ void wait_for_h(const Tile& tile, int round) const {
    wait_for_count(arguments_.state.h_stored + down_.counter_of(tile),
                   gate_up_.arrivals(tile, arguments_.first_mlp + round + 1));
  }

  // Partial sums past L1, which may have those of the MLP before, and always in the same order.
  __device__ float inverse_rms(int row, int round) const {
    if (round == 0 && arguments_.inverse_rms != nullptr) return arguments_.inverse_rms[row];
    const Geometry& down = arguments_.down.geometry;
    const std::int64_t stride = ChainState::squares_stride(down.tokens);
    const double* from = arguments_.state.squares + row;
    WideSum sum(arguments_.eps_squares);
    constexpr int batch = 16;
    for (int first = 0; first < down.n_tiles; first += batch) {
      double partial[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        partial[i] = first + i < down.n_tiles ? __ldcg(from + std::int64_t{first + i} * stride) : 0.0;
      }
      sum.add(partial);
    }
    return sum.inverse_root() * arguments_.root_of_columns;
  }

  // A consumer warp has multiplied the last k-step.
  __device__ void drain() {
    if (overlaid() && threadIdx.x % 32 == 0) barrier_arrive(&storage_.drained);
  }

  __device__ __forceinline__ void gate_up(int warpgroup) {
    const auto thread = static_cast<int>(threadIdx.x);
    auto tCrC = gate_up_.accumulators();
    gate_up_.multiply(warpgroup, tCrC);
    drain();
    const Tile& tile = gate_up_.tile();
    const int slabs = tile.template slabs_of<GateUp::config>(warpgroup);
    if (slabs > 0) {
      barrier_wait(&storage_.scaled, rounds_ & 1U);
      GateUp::Epilogue::store(arguments_.gate_up.out, tile, storage_.staging.gate_up, storage_.inverse_rms, thread,
                              tCrC);
      named_barrier_arrive(scales_read_barrier, scales_read_threads(tile));
    }
    by_copying_thread([&] {
      if (slabs > 0) {
        store_wait();
        count(arguments_.state.h_stored + gate_up_.counter_of(tile));
      }
      if (overlaid()) barrier_release_remote(&storage_.idle, down_.place().rank ^ 1U);
    });
    __syncwarp();
  }

  // Whether this block has all of the warpgroup's sums now. The block that receives has sent h, and its mailbox and
  // staging buffer lie where that was staged. What it receives tells it that all of its own has been read, too: the
  // sender has waited for it.
  template <class Accumulator>
  __device__ __forceinline__ bool put_sums_together(bool receives, int slabs, Accumulator& tCrC) {
    if (overlaid() && !receives) barrier_wait_for_cluster(&storage_.idle, rounds_ & 1U);
    return Down::Reduction::complete(storage_.staging.down.mailbox, down_.place(), slabs, static_cast<int>(threadIdx.x),
                                     reduction_phase_, tCrC);
  }

  __device__ __forceinline__ void down(int warpgroup) {
    const auto thread = static_cast<int>(threadIdx.x);
    const std::uint32_t other = down_.place().rank ^ 1U;
    const bool receives = other != static_cast<std::uint32_t>(warpgroup);
    auto tCrC = down_.accumulators();
    down_.multiply(warpgroup, tCrC);
    const Tile& tile = down_.tile();
    const int slabs = tile.template slabs_of<Down::config>(warpgroup);
    const bool completes = slabs > 0 && put_sums_together(receives, slabs, tCrC);
    // Not before: the next gate_up's weights, which are then requested, would delay the sums.
    drain();
    if (overlaid() && thread % 32 == 0) barrier_arrive_remote(&storage_.peer_drained, other);
    __syncwarp();
    if (!completes) return;
    Down::Epilogue::store(arguments_.down.out, tile, arguments_.down.geometry, storage_.staging.down.out,
                          arguments_.state.squares, thread, tCrC);
    by_copying_thread([&] {
      store_wait();
      count(arguments_.state.s_stored + down_.counter_of(tile));
    });
    Down::Reduction::let_send_again(storage_.staging.down.mailbox, down_.place(), thread);
  }

  const Args& arguments_;
  Storage& storage_;
  ChainProduct<GateUp> gate_up_;
  ChainProduct<Down> down_;
  std::uint32_t rounds_ = 0;  // of the consumers
  std::uint32_t reduction_phase_ = 0;
};

template <class GateUp, class Down>
__global__ __launch_bounds__(GateUp::config.threads(),
                             1) void chain_kernel(const __grid_constant__ ChainArguments<GateUp, Down> arguments) {
  constexpr Config config = GateUp::config;
  static_assert(config.threads() == Down::config.threads() && config.has_producers() && Down::config.has_producers());
  static_assert(config.cluster() == 2 && config.cluster_m == 2 && Down::config.cluster() == 2 &&
                Down::config.split_k == 2);
  static_assert(config.tile_m == ChainState::tile_rows && Down::config.tile_m == ChainState::tile_rows &&
                Down::config.tile_n == ChainState::tile_columns);
  static_assert(sizeof(typename ChainBlock<GateUp, Down>::Storage) <= Config::most_shared_bytes);
  static_assert(!config.pingpong() && !Down::config.pingpong() && config.warpgroups == 2);
  using Chain = ChainBlock<GateUp, Down>;
  using Storage = typename Chain::Storage;
  extern __shared__ __align__(1024) std::byte raw[];
  if (shared_address(raw) % 1024 != 0) __trap();
  auto& storage = *reinterpret_cast<Storage*>(raw);

  begin_delays(arguments);
  if (threadIdx.x == 0) {
    Loader<config, typename GateUp::Element>::prefetch_descriptors(arguments.gate_up.loads, arguments.gate_up.geometry);
    Loader<Down::config, typename Down::Element>::prefetch_descriptors(arguments.down.loads, arguments.down.geometry);
    prefetch_descriptor(&arguments.gate_up.out);
    prefetch_descriptor(&arguments.down.out);
    Chain::init(storage);
  }
  __syncwarp();
  cluster_meet();

  ptx::launch_next_grid();
  Chain chain(arguments, storage);
  if (threadIdx.x >= 128 * config.warpgroups) {
    const int warp = uniform(static_cast<int>(threadIdx.x) / 32) - 4 * config.warpgroups;
    if (warp == loads_per_step) {
      chain.scale();
    } else {
      chain.produce(static_cast<Load>(warp));
    }
  } else {
    chain.consume();
  }
  // A block must outlive what its peer sends it: copies and arrivals.
  __syncwarp();
  cluster_sync();
}

}  // namespace gatefold::cuda::sm90
