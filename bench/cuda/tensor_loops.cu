#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cstdint>
#include <cute/arch/mma_sm80.hpp>

#include "cuda/sm80/ptx.cuh"
#include "tensor_loop.cuh"
#include "tensor_loops.hpp"

namespace gatefold::bench {
namespace {

constexpr int threads = product_threads;
constexpr int slots = 3;
constexpr int shared_bytes = slots * slot_bytes;

// A warp's 64x96 tile: 4 x 12 products of 16x8 for every 16 of k, there and back, as RollingMainloop orders them.
template <bool reads>
__global__ __launch_bounds__(threads, 1) void sync_loop(const std::uint32_t* data, float* out, int steps) {
  extern __shared__ __align__(1024) std::uint32_t shared[];
  fill_slots<slots>(shared, data);
  __syncthreads();
  constexpr int rows = 4, columns = 12, row_bytes = 128;
  const auto lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t place = lane % 16 * row_bytes + (lane / 16 ^ lane % 8) * 16;
  const std::uint32_t first = cute::cast_smem_ptr_to_uint(shared);
  const std::uint32_t first_a = first + warp % 4 * 64 * row_bytes + place;
  const std::uint32_t first_b = first + (tile_m + warp / 4 * 96) * row_bytes + place;
  std::uint32_t a[rows][4], b[columns][2];
  float c[rows][columns][4] = {};
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (reads || step == 0) {
      const std::uint32_t k_block = step % 4 * 32;
#pragma unroll
      for (int m = 0; m < rows; ++m) {
        cuda::sm80::load_matrices((first_a ^ k_block) + m * 16 * row_bytes, a[m][0], a[m][1], a[m][2], a[m][3]);
      }
#pragma unroll
      for (int n = 0; n < columns; n += 2) {
        cuda::sm80::load_matrices((first_b ^ k_block) + n * 8 * row_bytes, b[n][0], b[n][1], b[n + 1][0], b[n + 1][1]);
      }
    }
#pragma unroll
    for (int m = 0; m < rows; ++m) {
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        const int n = m % 2 == 0 ? i : columns - 1 - i;
        float(&d)[4] = c[m][n];
        cute::SM80_16x8x16_F32BF16BF16F32_TN::fma(d[0], d[1], d[2], d[3], a[m][0], a[m][1], a[m][2], a[m][3], b[n][0],
                                                  b[n][1], d[0], d[1], d[2], d[3]);
      }
    }
  }
  float sum = 0.0F;
  for (const auto& row : c) {
    for (const auto& product : row) sum += product[0] + product[1] + product[2] + product[3];
  }
  out[blockIdx.x * threads + threadIdx.x] = sum;
}

template <class Element>
__global__ __launch_bounds__(product_threads, 1) void wgmma_loop(const std::uint32_t* data, float* out, int steps) {
  extern __shared__ __align__(1024) std::uint32_t shared[];
  fill_slots<slots>(shared, data);
  __syncthreads();
  asm volatile("fence.proxy.async;\n");
  out[blockIdx.x * product_threads + threadIdx.x] = multiply_slots<Element, slots>(shared, steps);
}

__global__ void mask_kernel(std::uint32_t* data, std::size_t words, std::uint32_t mask) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < words) data[i] &= mask;
}

template <auto kernel>
void launch(const void* data, float* out, int multiprocessors, int steps, cudaStream_t stream) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  kernel<<<multiprocessors, threads, shared_bytes, stream>>>(static_cast<const std::uint32_t*>(data), out, steps);
}

constexpr double sync_flops = 2.0 * tile_m * tile_n * 16;

}  // namespace

TensorLoop sync_loop_in_registers() { return {"mma.sync bf16", sync_flops, launch<sync_loop<false>>}; }
TensorLoop sync_loop_with_reads() { return {"mma.sync bf16, ldmatrix", sync_flops, launch<sync_loop<true>>}; }
TensorLoop wgmma_loop_bf16() { return {"wgmma bf16", wgmma_flops, launch<wgmma_loop<cute::bfloat16_t>>}; }
TensorLoop wgmma_loop_fp16() { return {"wgmma fp16", wgmma_flops, launch<wgmma_loop<cute::half_t>>}; }

void mask_words(void* data, std::size_t words, unsigned mask, cudaStream_t stream) {
  const auto both = std::uint32_t{mask} << 16 | mask;
  mask_kernel<<<static_cast<unsigned>((words + threads - 1) / threads), threads, 0, stream>>>(
      static_cast<std::uint32_t*>(data), words, both);
}

}  // namespace gatefold::bench
