#pragma once

#include <cstdint>

// Every inline PTX instruction of the library that CuTe does not wrap.
namespace gatefold::cuda::ptx {

// 2^x, relative error below 2^-22. One MUFU.EX2; without .ftz, so that results below 2^-126 keep their value.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1/x for x in [2^-126, 2^126], within 1 ulp. One MUFU.RCP.
__device__ __forceinline__ float rcp(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 16 bytes from memory that may also be written by this kernel.
__device__ __forceinline__ uint4 load_vector(const void* pointer) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(pointer));
  return v;
}

// The same for bytes that are read once: not kept in L1.
__device__ __forceinline__ uint4 load_streaming(const void* pointer) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(pointer));
  return v;
}

__device__ __forceinline__ void store_vector(void* pointer, const uint4& v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(pointer), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

}  // namespace gatefold::cuda::ptx
