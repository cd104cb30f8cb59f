#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cstdint>
#include <cute/arch/mma_sm80.hpp>

#include "cuda/common/wgmma.cuh"
#include "cuda/sm80/ptx.cuh"
#include "tensor_loops.hpp"

namespace gatefold::bench {
namespace {

constexpr int threads = 256;
constexpr int tile_m = 256, tile_n = 192, tile_k = 64, slots = 3;
constexpr int shared_bytes = slots * (tile_m + tile_n) * tile_k * 2;

__device__ void fill_shared(std::uint32_t* shared, const std::uint32_t* data) {
  for (int i = static_cast<int>(threadIdx.x); i < shared_bytes / 4; i += threads) shared[i] = data[i % loop_words];
  __syncthreads();
}

// A warp's 64x96 tile: 4 x 12 products of 16x8 for every 16 of k, there and back, as RollingMainloop orders them.
template <bool reads>
__global__ __launch_bounds__(threads, 1) void sync_loop(const std::uint32_t* data, float* out, int steps) {
  extern __shared__ __align__(1024) std::uint32_t shared[];
  fill_shared(shared, data);
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

// Two warpgroups of 128x192 each, as sm90's main loop orders them.
template <class Element>
__global__ __launch_bounds__(threads, 1) void wgmma_loop(const std::uint32_t* data, float* out, int steps) {
  using namespace cute;
  extern __shared__ __align__(1024) std::uint32_t shared[];
  fill_shared(shared, data);
  asm volatile("fence.proxy.async;\n");
  using SmemAtom = SM90::GMMA::Layout_K_SW128_Atom<Element>;
  auto* elements = reinterpret_cast<Element*>(shared);
  auto sA = make_tensor(make_smem_ptr(elements),  // (tile_m, tile_k, slots)
                        tile_to_shape(SmemAtom{}, Shape<Int<tile_m>, Int<tile_k>, Int<slots>>{}));
  auto sB = make_tensor(make_smem_ptr(elements + slots * tile_m * tile_k),  // (tile_n, tile_k, slots)
                        tile_to_shape(SmemAtom{}, Shape<Int<tile_n>, Int<tile_k>, Int<slots>>{}));
  auto tiled_mma = make_tiled_mma(cuda::Wgmma<Element, tile_n>{}, Layout<Shape<_2, _1, _1>>{});
  auto thr_mma = tiled_mma.get_slice(__shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0) * 128);
  auto tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, mma_m, mma_k, slots): descriptors
  auto tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));  // (mma, mma_n, mma_k, slots): descriptors
  auto tCrC = partition_fragment_C(tiled_mma, Shape<Int<tile_m>, Int<tile_n>>{});
  clear(tCrC);
  tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::One;
  int slot = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    warpgroup_fence_operand(tCrC);
    warpgroup_arrive();
#pragma unroll
    for (int k = 0; k < size<2>(tCrA); ++k) {
#pragma unroll
      for (int slab = 0; slab < size<1>(tCrA); ++slab) {
        cute::gemm(tiled_mma, tCrA(_, slab, k, slot), tCrB(_, 0, k, slot), tCrC(_, slab, 0));
      }
    }
    warpgroup_commit_batch();
    warpgroup_wait<1>();
    warpgroup_fence_operand(tCrC);
    slot = slot == slots - 1 ? 0 : slot + 1;
  }
  warpgroup_wait<0>();
  warpgroup_fence_operand(tCrC);
  float sum = 0.0F;
  for (int i = 0; i < size(tCrC); ++i) sum += tCrC(i);
  out[blockIdx.x * threads + threadIdx.x] = sum;
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
constexpr double wgmma_flops = 2.0 * tile_m * tile_n * tile_k;

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
