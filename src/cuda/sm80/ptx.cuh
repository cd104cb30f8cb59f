#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include <cute/numeric/numeric_types.hpp>

// The instructions of this family that CuTe has no word for, and conversions.
namespace gatefold::sm80 {

// 16 bytes to shared memory, past L1; the last 16 - bytes of them are zeros, and nothing is read for 0.
__device__ inline void copy_async_16(std::uint32_t shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global), "r"(bytes));
}

// fp32 = big + small, both tf32: 11 significant bits each, so what is lost is below 2^-24 of the value.
__device__ inline std::uint32_t to_tf32(float value) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(value));
  return bits;
}

// Two neighbouring elements of a row, to and from one word (two for fp32).
__device__ inline void store_pair(cute::bfloat16_t* p, float a, float b) {
  *reinterpret_cast<__nv_bfloat162*>(p) = __floats2bfloat162_rn(a, b);
}
__device__ inline void store_pair(cute::half_t* p, float a, float b) {
  *reinterpret_cast<__half2*>(p) = __floats2half2_rn(a, b);
}
__device__ inline void store_pair(float* p, float a, float b) { *reinterpret_cast<float2*>(p) = make_float2(a, b); }

__device__ inline float2 load_pair(const cute::bfloat16_t* p) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
}
__device__ inline float2 load_pair(const cute::half_t* p) {
  return __half22float2(*reinterpret_cast<const __half2*>(p));
}
__device__ inline float2 load_pair(const float* p) { return *reinterpret_cast<const float2*>(p); }

__device__ inline void store_one(cute::bfloat16_t* p, float a) {
  *reinterpret_cast<__nv_bfloat16*>(p) = __float2bfloat16_rn(a);
}
__device__ inline void store_one(cute::half_t* p, float a) { *reinterpret_cast<__half*>(p) = __float2half_rn(a); }
__device__ inline void store_one(float* p, float a) { *p = a; }

}  // namespace gatefold::sm80
