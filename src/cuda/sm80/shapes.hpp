#pragma once

#include "cuda/sm80/config.hpp"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm80.md).
namespace gatefold::cuda::sm80 {

constexpr Gating gating_of(Op op) { return op == Op::gate_up ? Gating::groups_of_eight : Gating::none; }

// Large, LargeAnyOrder and Tall: one block of eight warps per multiprocessor, with as many stages as 227 KiB hold
// beside the staging tile, for compute capability 9.0 and later chips of that kind.
template <Op op, DType dtype>
struct Large {
  static constexpr Config config{.op = op,
                                 .dtype = dtype,
                                 .gating = gating_of(op),
                                 .tile_m = 128,
                                 .tile_n = 256,
                                 .tile_k = 64,
                                 .stages = op == Op::gemm_gated ? 3 : 4,
                                 .warps_m = 2,
                                 .warps_n = 4,
                                 .copies = Copies::lines};
};

// The same with TileLoader, for pairs of weights in an order that LineLoader can't follow.
template <DType dtype, Gating gating = Gating::groups_of_eight>
struct LargeAnyOrder {
  static constexpr Config config{.op = Op::gate_up,
                                 .dtype = dtype,
                                 .gating = gating,
                                 .tile_m = 128,
                                 .tile_n = 256,
                                 .tile_k = 64,
                                 .stages = 4,
                                 .warps_m = 2,
                                 .warps_n = 4};
};

// Half as much again in a tile, brought by the copy engine, for long inputs. gemm_gated's gate tile would leave room
// for two stages only.
template <Op op, DType dtype>
struct Tall {
  static constexpr Config config{.op = op,
                                 .dtype = dtype,
                                 .gating = gating_of(op),
                                 .tile_m = 256,
                                 .tile_n = 192,
                                 .tile_k = 64,
                                 .stages = 3,
                                 .warps_m = 4,
                                 .warps_n = 2,
                                 .copies = Copies::boxes,
                                 .rolling = true,
                                 .cluster = 2};
};

// Two blocks of four warps, each the other's latency to hide behind: 80 KiB (gemm_gated: 96), which an A100 holds
// twice, and the 99 KiB parts (8.6, 8.9, 12.0) once.
template <Op op, DType dtype>
struct Small {
  static constexpr Config config{.op = op,
                                 .dtype = dtype,
                                 .gating = gating_of(op),
                                 .tile_m = 128,
                                 .tile_n = 128,
                                 .tile_k = 64,
                                 .stages = 2,
                                 .warps_m = 2,
                                 .warps_n = 2,
                                 .blocks_per_sm = 2};
};

// Four times the bytes per product and three products: arithmetic hides the loads, 96 KiB at most must do.
template <Op op>
struct Fp32 {
  static constexpr Config config{.op = op,
                                 .dtype = DType::fp32,
                                 .gating = gating_of(op),
                                 .tile_m = op == Op::gemm_gated ? 64 : 128,
                                 .tile_n = 128,
                                 .tile_k = 32,
                                 .stages = 2,
                                 .warps_m = 2,
                                 .warps_n = 2,
                                 .blocks_per_sm = 2};
};

}  // namespace gatefold::cuda::sm80
