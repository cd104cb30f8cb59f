#pragma once

#include <cstdint>

#include "cuda/common/ptx.cuh"
#include "cuda/copy_engine/delay.cuh"

// Who waits for whom on compute capability 9.0 and later: barriers in shared memory that count arrivals and bytes,
// those of a cluster, and of grids.
namespace gatefold::cuda {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- mbarrier ----
//
// A barrier is named by a pointer, or by its address in shared memory.

__device__ inline void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void barrier_init(std::uint64_t* barrier, int arrivals) {
  barrier_init(shared_address(barrier), arrivals);
}

// Makes initialised barriers visible to the cluster and to the copy engine.
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void barrier_expect_bytes(std::uint32_t barrier, int bytes) {
  delay();
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void barrier_expect_bytes(std::uint64_t* barrier, int bytes) {
  barrier_expect_bytes(shared_address(barrier), bytes);
}

__device__ inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  delay();
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
  delay();
}
__device__ inline void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  barrier_wait(shared_address(barrier), parity);
}

// Whether a wait would end at once.
__device__ inline bool barrier_test(std::uint32_t barrier, std::uint32_t parity) {
  delay();
  std::uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.b32 %0, 1, 0, done;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ inline void barrier_arrive(std::uint64_t* barrier) {
  delay();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Where the same place of a block's shared memory lies for the whole cluster.
__device__ inline std::uint32_t cluster_address(std::uint32_t shared, std::uint32_t block) {
  std::uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(block));
  return address;
}

// On a barrier of any block of the cluster. Without .release.cluster, which would compile to a GPU-wide memory barrier
// per k-step: the slot has only been read, and what was read has arrived in registers.
__device__ inline void barrier_arrive_at(std::uint32_t cluster_address) {
  delay();
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address) : "memory");
}

// On the same barrier of another block of the cluster, likewise: nothing but wgmma has read the slot, and
// wgmma.wait_group has ordered that.
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

// On the same barrier of another block of the cluster, which may then overwrite what this thread, and those that it has
// come together with, have read by ordinary loads: ordered for the whole cluster, which costs a memory barrier. To be
// called once a tile, not once a k-step; the other block waits by barrier_wait_for_cluster.
__device__ inline void barrier_release_remote(std::uint64_t* barrier, std::uint32_t block) {
  delay();
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(block)
      : "memory");
}

// As barrier_wait, for arrivals and stores of other blocks of the cluster.
__device__ inline void barrier_wait_for_cluster(std::uint64_t* barrier, std::uint32_t parity) {
  delay();
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
  delay();
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

// ---- clusters ----

__device__ inline std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// By all threads of all blocks, in whole warps, also of a block without a cluster: what comes after the wait sees the
// barriers that were initialised, and fenced by fence_barrier_init, before the arrival. No other memory is ordered, so
// that no arrival waits for any.
__device__ inline void cluster_arrive() {
  delay();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  delay();
}
__device__ inline void cluster_meet() {
  cluster_arrive();
  cluster_wait();
}

// The same for what threads have stored and sent, which costs a GPU-wide memory barrier.
__device__ inline void cluster_sync() {
  delay();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  delay();
}

// ---- grids ----

__device__ inline void wait_for_previous_grid() {
  delay();
  ptx::wait_for_previous_grid();
}

}  // namespace gatefold::cuda
