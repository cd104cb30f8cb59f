#include "eager_pair.hpp"

#include <stdexcept>

#include "cuda/common/element.cuh"
#include "cuda/common/specialise.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

constexpr int threads = 256;

template <class Element>
__global__ void __launch_bounds__(threads) silu_kernel(const uint4* in, uint4* out, std::int64_t vectors) {
  const std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  if (i >= vectors) return;
  auto v = cuda::Vector<Element>::unpack(in[i]);
#pragma unroll
  for (float& x : v.values) x = x / (1.0F + __expf(-x));
  out[i] = v.pack();
}

template <class Element>
__global__ void __launch_bounds__(threads)
    multiply_kernel(const uint4* a, const uint4* b, uint4* out, std::int64_t vectors) {
  const std::int64_t i = blockIdx.x * std::int64_t{threads} + threadIdx.x;
  if (i >= vectors) return;
  auto v = cuda::Vector<Element>::unpack(a[i]);
  const auto w = cuda::Vector<Element>::unpack(b[i]);
#pragma unroll
  for (int k = 0; k < cuda::Vector<Element>::elements; ++k) v.values[k] *= w.values[k];
  out[i] = v.pack();
}

std::int64_t vectors_of(gatefold_dtype dtype, std::int64_t elements) {
  const std::int64_t bytes = elements * size_of(static_cast<DType>(dtype));
  if (bytes % 16 != 0) throw std::runtime_error("eager pair: the tensors are no multiple of 16 bytes");
  return bytes / 16;
}

unsigned blocks_of(std::int64_t vectors) { return static_cast<unsigned>((vectors + threads - 1) / threads); }

}  // namespace

void eager_silu(gatefold_dtype dtype, const void* gate, void* activated, std::int64_t elements, cudaStream_t stream) {
  const std::int64_t vectors = vectors_of(dtype, elements);
  cuda::with_element(static_cast<DType>(dtype), [&](auto element) {
    using Element = typename decltype(element)::type;
    silu_kernel<Element><<<blocks_of(vectors), threads, 0, stream>>>(static_cast<const uint4*>(gate),
                                                                     static_cast<uint4*>(activated), vectors);
  });
  require(cudaGetLastError(), "eager_silu");
}

void eager_multiply(gatefold_dtype dtype, const void* activated, const void* up, void* out, std::int64_t elements,
                    cudaStream_t stream) {
  const std::int64_t vectors = vectors_of(dtype, elements);
  cuda::with_element(static_cast<DType>(dtype), [&](auto element) {
    using Element = typename decltype(element)::type;
    multiply_kernel<Element><<<blocks_of(vectors), threads, 0, stream>>>(
        static_cast<const uint4*>(activated), static_cast<const uint4*>(up), static_cast<uint4*>(out), vectors);
  });
  require(cudaGetLastError(), "eager_multiply");
}

}  // namespace gatefold::bench
