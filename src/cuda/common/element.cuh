#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/types.hpp"

// The element types as CUDA names them, one at a time and 16 bytes at a time, to and from fp32.
namespace gatefold::cuda {

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// Rounds to nearest even.
template <class Element>
__device__ __forceinline__ Element from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Two elements of a 32-bit word (one for fp32), lower address first.
template <class Element>
struct Word;
template <>
struct Word<float> {
  static constexpr int elements = 1;
  __device__ __forceinline__ static void unpack(std::uint32_t bits, float* out) { out[0] = __uint_as_float(bits); }
  __device__ __forceinline__ static std::uint32_t pack(const float* in) { return __float_as_uint(in[0]); }
};
template <>
struct Word<__half> {
  static constexpr int elements = 2;
  __device__ __forceinline__ static void unpack(std::uint32_t bits, float* out) {
    const float2 pair = __half22float2(reinterpret_cast<const __half2&>(bits));
    out[0] = pair.x;
    out[1] = pair.y;
  }
  __device__ __forceinline__ static std::uint32_t pack(const float* in) {
    const __half2 pair = __floats2half2_rn(in[0], in[1]);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
};
template <>
struct Word<__nv_bfloat16> {
  static constexpr int elements = 2;
  __device__ __forceinline__ static void unpack(std::uint32_t bits, float* out) {
    out[0] = __uint_as_float(bits << 16);
    out[1] = __uint_as_float(bits & 0xffff0000U);
  }
  __device__ __forceinline__ static std::uint32_t pack(const float* in) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(in[0], in[1]);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
};

// 16 bytes of elements as fp32.
template <class Element>
struct Vector {
  static constexpr int words = 4;
  static constexpr int elements = words * Word<Element>::elements;
  float values[elements];

  __device__ __forceinline__ static Vector unpack(const uint4& bits) {
    Vector v;
    const std::uint32_t w[words] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < words; ++i) Word<Element>::unpack(w[i], v.values + i * Word<Element>::elements);
    return v;
  }
  __device__ __forceinline__ uint4 pack() const {
    std::uint32_t w[words];
#pragma unroll
    for (int i = 0; i < words; ++i) w[i] = Word<Element>::pack(values + i * Word<Element>::elements);
    return {w[0], w[1], w[2], w[3]};
  }
};

}  // namespace gatefold::cuda
