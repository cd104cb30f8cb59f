#pragma once

#include <cstdint>

#include "cuda/copy_engine/copies.cuh"

// The Hopper instructions that the kernels of this folder issue themselves, beside those of the copy engine and its
// barriers.
namespace gatefold::cuda::sm90 {

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

// Two of them, whose addresses come from lanes 0 to 15, and one.
__device__ inline void store_matrices_transposed(std::uint32_t address, std::uint32_t a, std::uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b)
               : "memory");
}
__device__ inline void store_matrices_transposed(std::uint32_t address, std::uint32_t a) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address), "r"(a) : "memory");
}

// The same way round as store_matrices.
__device__ inline void load_matrices(std::uint32_t address, std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                     std::uint32_t& d) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices(std::uint32_t address, std::uint32_t& a, std::uint32_t& b) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(address) : "memory");
}

// Two: the addresses come from lanes 0 to 15.
__device__ inline void store_matrices(std::uint32_t address, std::uint32_t a, std::uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b) : "memory");
}

}  // namespace gatefold::cuda::sm90
