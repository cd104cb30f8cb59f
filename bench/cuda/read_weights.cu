#include <cstdint>

#include "read_weights.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

constexpr int threads = 512;
constexpr int loads = 8;  // under way in each thread: 2048 threads x 128 bytes are 256 KB on a multiprocessor
constexpr int vectors_of_block = threads * loads;

__device__ __forceinline__ uint4 load_once(const uint4* pointer) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(pointer));
  return v;
}

__global__ void __launch_bounds__(threads)
    read_kernel(const uint4* weights, std::int64_t vectors, std::uint32_t* sink) {
  const std::int64_t first = blockIdx.x * std::int64_t{vectors_of_block} + threadIdx.x;
  uint4 v[loads] = {};
#pragma unroll
  for (int i = 0; i < loads; ++i) {
    const std::int64_t at = first + i * threads;
    if (at < vectors) v[i] = load_once(weights + at);
  }
  std::uint32_t all = 0xffffffffU;
#pragma unroll
  for (int i = 0; i < loads; ++i) all &= v[i].x & v[i].y & v[i].z & v[i].w;
  if (all == 0x89abcdefU) *sink = all;
}

}  // namespace

void read_weights(const void* weights, std::size_t bytes, void* sink, cudaStream_t stream) {
  const auto vectors = static_cast<std::int64_t>(bytes / sizeof(uint4));
  const auto blocks = static_cast<unsigned>((vectors + vectors_of_block - 1) / vectors_of_block);
  read_kernel<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(weights), vectors,
                                              static_cast<std::uint32_t*>(sink));
  require(cudaGetLastError(), "read_weights");
}

}  // namespace gatefold::bench
