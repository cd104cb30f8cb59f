#include "device_buffer.hpp"

#include "cuda/common/element.cuh"
#include "cuda/common/specialise.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

// A well mixed 64-bit number for each index (the finaliser of SplitMix64).
__device__ std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

template <class Element>
__global__ void normal_kernel(Element* out, std::int64_t elements, std::uint64_t seed) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < elements; i += stride) {
    const std::uint64_t bits = mix(seed ^ mix(static_cast<std::uint64_t>(i)));
    const float u = (static_cast<float>(bits >> 40) + 0.5F) * 0x1p-24F;  // (0, 1)
    const float angle = static_cast<float>(bits & 0xffffffU) * 0x1p-23F;
    out[i] = cuda::from_float<Element>(sqrtf(-2.0F * logf(u)) * cospif(angle));  // Box and Muller
  }
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) { require(cudaMalloc(&data_, bytes), "cudaMalloc"); }

DeviceBuffer::~DeviceBuffer() { static_cast<void>(cudaFree(data_)); }

void DeviceBuffer::fill_normal(gatefold_dtype dtype, std::uint64_t seed) {
  cuda::with_element(static_cast<DType>(dtype), [&](auto element) {
    using Element = typename decltype(element)::type;
    normal_kernel<<<1024, 256>>>(static_cast<Element*>(data_), static_cast<std::int64_t>(bytes_ / sizeof(Element)),
                                 seed);
  });
  require(cudaDeviceSynchronize(), "fill_normal");
}

}  // namespace gatefold::bench
