#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/copy_engine/barriers.cuh"

// What the copy engine of compute capability 9.0 and later is requested: boxes of a tensor, by a descriptor.
namespace gatefold::cuda {

// By a whole warp: true for one lane. What that lane then requests the compiler knows to be uniform, and needs no loop
// over the lanes' descriptors: where it is the whole condition of the branch that requests. Of `if (a && elect_one())`
// or of a bool that was handed on ptxas may have forgotten where it came from, so branches are nested.
__device__ inline bool elect_one() {
  std::uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, elected;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}

__device__ inline void prefetch_descriptor(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ inline void load_tile_2d(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0, int c1) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1)
      : "memory");
}

__device__ inline void load_tile_2d_multicast(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0,
                                              int c1, std::uint16_t blocks) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4}], [%2], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "h"(blocks)
      : "memory");
}

__device__ inline void load_tile_3d(const CUtensorMap* map, std::uint32_t barrier, std::uint32_t shared, int c0, int c1,
                                    int c2) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(shared),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
__device__ inline void load_tile_3d(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0, int c1,
                                    int c2) {
  load_tile_3d(map, shared_address(barrier), shared_address(shared), c0, c1, c2);
}

// What passes through L2 by a policy (ptx::evict_first_policy).
__device__ inline void load_tile_3d(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0, int c1,
                                    int c2, std::uint64_t policy) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, "
      "%5}], [%2], %6;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "l"(policy)
      : "memory");
}

__device__ inline void load_tile_3d_multicast(const CUtensorMap* map, std::uint32_t barrier, std::uint32_t shared,
                                              int c0, int c1, int c2, std::uint16_t blocks) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4, %5}], [%2], %6;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "h"(blocks)
      : "memory");
}
__device__ inline void load_tile_3d_multicast(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0,
                                              int c1, int c2, std::uint16_t blocks) {
  load_tile_3d_multicast(map, shared_address(barrier), shared_address(shared), c0, c1, c2, blocks);
}
__device__ inline void load_tile_3d_multicast(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0,
                                              int c1, int c2, std::uint16_t blocks, std::uint64_t policy) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "h"(blocks), "l"(policy)
      : "memory");
}

__device__ inline void load_tile_4d(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0, int c1,
                                    int c2, int c3) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
__device__ inline void load_tile_4d(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0, int c1,
                                    int c2, int c3, std::uint64_t policy) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, "
      "%5, %6}], [%2], %7;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(policy)
      : "memory");
}
__device__ inline void load_tile_4d_multicast(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0,
                                              int c1, int c2, int c3, std::uint16_t blocks) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4, %5, %6}], [%2], %7;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(blocks)
      : "memory");
}

__device__ inline void store_tile_2d(const CUtensorMap* map, const void* shared, int c0, int c1) {
  delay();
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1)
               : "memory");
}

// Brings a box to L2 and no further.
__device__ inline void prefetch_tile_2d(const CUtensorMap* map, int c0, int c1) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(c0), "r"(c1) : "memory");
}
__device__ inline void prefetch_tile_3d(const CUtensorMap* map, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
__device__ inline void prefetch_tile_4d(const CUtensorMap* map, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0), "r"(c1),
               "r"(c2), "r"(c3)
               : "memory");
}

__device__ inline void store_commit() {
  delay();
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until the stores of this thread have read their shared memory, but for the last `under_way` groups of them.
template <int under_way = 0>
__device__ inline void store_wait_read() {
  delay();
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(under_way) : "memory");
  delay();
}

// Until they are in memory, where this thread can see them.
__device__ inline void store_wait() {
  delay();
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  delay();
}

// Orders what this thread has seen of memory before what it requests of the copy engine.
__device__ inline void fence_async_global() {
  delay();
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// Orders ordinary writes to shared memory before the copy engine's reads.
__device__ inline void fence_async_shared() {
  delay();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace gatefold::cuda
