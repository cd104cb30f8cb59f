#pragma once

#include "cuda/sm80/config.hpp"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm80.md).
namespace gatefold::cuda::sm80 {

constexpr Gating gating_of(Op op) { return op == Op::gate_up ? Gating::groups_of_eight : Gating::none; }

// Large, LargeAnyOrder and Tall: one block of eight warps per multiprocessor, with as many stages as 227 KiB hold
// beside the staging tile, for compute capability 9.0 and later chips of that kind.
template <Op op, DType dtype>
struct Large {
  static constexpr Config config{op, dtype, gating_of(op), 128, 256, 64, op == Op::gemm_gated ? 3 : 4, 2,
                                 4,  1,     Copies::lines};
};

// The same with TileLoader, for pairs of weights in an order that LineLoader can't follow.
template <DType dtype, Gating gating = Gating::groups_of_eight>
struct LargeAnyOrder {
  static constexpr Config config{Op::gate_up, dtype, gating, 128, 256, 64, 4, 2, 4};
};

// Half as much again in a tile, brought by the copy engine, for long inputs. gemm_gated's gate tile would leave room
// for two stages only.
template <Op op, DType dtype>
struct Tall {
  static constexpr Config config{op, dtype, gating_of(op), 256, 192, 64, 3, 4, 2, 1, Copies::boxes, true, 2};
};

// Two blocks of four warps, each the other's latency to hide behind: 80 KiB (gemm_gated: 96), which an A100 holds
// twice, and the 99 KiB parts (8.6, 8.9, 12.0) once.
template <Op op, DType dtype>
struct Small {
  static constexpr Config config{op, dtype, gating_of(op), 128, 128, 64, 2, 2, 2, 2};
};

// Four times the bytes per product and three products: arithmetic hides the loads, 96 KiB at most must do.
template <Op op>
struct Fp32 {
  static constexpr Config config{op, DType::fp32, gating_of(op), op == Op::gemm_gated ? 64 : 128, 128, 32, 2, 2, 2, 2};
};

}  // namespace gatefold::cuda::sm80
