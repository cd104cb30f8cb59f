#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cute/tensor.hpp>

#include <type_traits>

#include "cuda/copy_engine/barriers.cuh"
#include "cuda/sm90_decode/config.hpp"
#include "cuda/sm90_decode/division.hpp"

namespace gatefold::cuda::sm90_decode {

// The element as CuTe names it, of the operands in shared memory.
template <class Element>
using Operand = std::conditional_t<std::is_same_v<Element, __half>, cute::half_t, cute::bfloat16_t>;

// A block among those of its cluster, which divide the k-steps of every tile: block r takes r, r + split, ... The
// blocks take them by turns, so that they read whole lines of memory's at about one time.
struct ClusterPlace {
  __device__ ClusterPlace(const Geometry& g, int k)
      : geometry(g),
        tile_k(k),
        rank(static_cast<int>(cluster_rank())),
        steps((geometry.k_steps - rank + geometry.split - 1) / geometry.split) {}

  // Where k-step `step` of this block's begins.
  __device__ int column_of(int step) const { return (step * geometry.split + rank) * tile_k; }

  const Geometry& geometry;
  int tile_k;
  int rank;
  int steps;  // of every tile's, this block's
};

// Where in the ring a producer or consumer stands. The phase flips at each turn.
struct RingPosition {
  int slot = 0;
  std::uint32_t phase = 0;

  __device__ void advance() {
    if (++slot == Config::stages) {
      slot = 0;
      phase ^= 1;
    }
  }
};

// What the ring holds: in each slot a k-step of a tile's weight rows and of its tokens, both line by line of 64
// columns; of the weights as they are requested, of gate_up all lines of gate and then of up, without a gap.
template <Config config, class Element>
struct Slots {
  alignas(1024) Operand<Element> weights[Config::stages][config.boxes() * config.rows() * Config::box_k];
  alignas(1024) Operand<Element> x[Config::stages][config.boxes()][config.tokens * Config::box_k];
};

// The barriers of the ring: full[s] counts the bytes that arrive in slot s, which the producer announces, and empty[s]
// the consumer warps that have multiplied it.
template <Config config>
struct Ring {
  std::uint64_t full[Config::stages];
  std::uint64_t empty[Config::stages];

  __device__ void init() {
    for (int s = 0; s < Config::stages; ++s) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], Config::consumer_warps);
    }
  }

  // By each consumer warp, all lanes together.
  __device__ void release(int slot) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(&empty[slot]);
  }
};

}  // namespace gatefold::cuda::sm90_decode
