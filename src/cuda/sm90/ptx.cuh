#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/sm90/delay.cuh"

// The Hopper instructions that the kernels of this folder issue themselves.
namespace gatefold::cuda::sm90 {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- mbarrier ----

__device__ inline void barrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the cluster and to the copy engine.
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void barrier_expect_bytes(std::uint64_t* barrier, int bytes) {
  delay();
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ inline void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  delay();
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
  delay();
}

__device__ inline void barrier_arrive(std::uint64_t* barrier) {
  delay();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// On the same barrier of another block of the cluster. Without .release.cluster, which would compile to a GPU-wide
// memory barrier per k-step: nothing but wgmma has read the slot, and wgmma.wait_group has ordered that.
__device__ inline void barrier_arrive_remote(std::uint64_t* barrier, std::uint32_t block) {
  delay();
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(block)
      : "memory");
}

// Sixteen bytes to another block of the cluster, counted by its barrier.
__device__ inline void store_remote(float* shared, std::uint64_t* barrier, std::uint32_t block, float a, float b,
                                    float c, float d) {
  asm volatile(
      "{\n"
      ".reg .b32 remote, counter;\n"
      "mapa.shared::cluster.u32 remote, %0, %2;\n"
      "mapa.shared::cluster.u32 counter, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [remote], {%3, %4, %5, %6}, [counter];\n"
      "}\n" ::"r"(shared_address(shared)),
      "r"(shared_address(barrier)), "r"(block), "f"(a), "f"(b), "f"(c), "f"(d)
      : "memory");
}

// ---- the copy engine ----

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

__device__ inline void load_tile_3d(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0, int c1,
                                    int c2) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}

__device__ inline void load_tile_3d_multicast(const CUtensorMap* map, std::uint64_t* barrier, void* shared, int c0,
                                              int c1, int c2, std::uint16_t blocks) {
  delay();
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4, %5}], [%2], %6;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "h"(blocks)
      : "memory");
}

__device__ inline void store_tile_2d(const CUtensorMap* map, const void* shared, int c0, int c1) {
  delay();
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1)
               : "memory");
}

// Brings a box to L2 and no further.
__device__ inline void prefetch_tile_3d(const CUtensorMap* map, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}

__device__ inline void store_commit() {
  delay();
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until the stores of this thread have read their shared memory.
__device__ inline void store_wait_read() {
  delay();
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  delay();
}

// Orders ordinary writes to shared memory before the copy engine's reads.
__device__ inline void fence_async_shared() {
  delay();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- grids (programmatic dependent launch) ----

// Lets the next kernel's blocks take the multiprocessors that this one's leave.
__device__ inline void launch_next_grid() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Until the kernel before this one has ended and its writes can be seen.
__device__ inline void wait_for_previous_grid() {
  delay();
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// ---- clusters, warps, registers ----

__device__ inline std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline void cluster_sync() {
  delay();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  delay();
}

__device__ inline void named_barrier_sync(int barrier, int threads) {
  delay();
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
  delay();
}

__device__ inline void named_barrier_arrive(int barrier, int threads) {
  delay();
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// threadIdx.x, read anew: nothing that follows from it occupies a register before.
__device__ inline int thread_again() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

template <int registers>
__device__ inline void register_limit_raise() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ inline void register_limit_lower() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

// Four 8 x 8 matrices of 16-bit elements: lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void store_matrices(std::uint32_t address, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                      std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

// The same of matrices that are held transposed: a lane has two neighbours of a column.
__device__ inline void store_matrices_transposed(std::uint32_t address, std::uint32_t a, std::uint32_t b,
                                                 std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

// Two: the addresses come from lanes 0 to 15.
__device__ inline void store_matrices(std::uint32_t address, std::uint32_t a, std::uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b) : "memory");
}

}  // namespace gatefold::cuda::sm90
