#pragma once

#include <cstdint>

// Every inline PTX instruction of the library that CuTe does not wrap.
namespace gatefold::cuda::ptx {

// 2^x for x in [-126, 128], relative error below 2^-22; 0 below. One MUFU.EX2.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1/x for x in [2^-126, 2^126], within 1 ulp. One MUFU.RCP.
__device__ __forceinline__ float rcp(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// a b + c between 0 and 1; NaN is 0.
__device__ __forceinline__ float saturated_fma(float a, float b, float c) {
  float d;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

// For what is read once: it is the first to leave L2.
__device__ __forceinline__ std::uint64_t evict_first_policy() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// For what is read again and again, but together doesn't fit L2, each half of which has a copy of its own: three lines
// of four are the last to leave, and the others the first, so that these don't drive each other out
// (docs/swap_ffn_log.md).
__device__ __forceinline__ std::uint64_t mostly_kept_policy() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, 0.75;" : "=l"(policy));
  return policy;
}

// 16 bytes from memory that may also be written by this kernel, or nothing in particular if not wanted. A predicate in
// place of a branch lets the loads around it be issued back to back. On 9.0 and later they are the last to leave L2,
// though nobody reads them again: measured, that is faster (docs/kernels/elementwise.md).
__device__ __forceinline__ uint4 load_vector_if(bool wanted, const void* pointer) {
  uint4 v;
#if __CUDA_ARCH__ >= 900
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
      "@p ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %6; }"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(pointer), "r"(static_cast<unsigned>(wanted)), "l"(policy));
#else
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
      "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(pointer), "r"(static_cast<unsigned>(wanted)));
#endif
  return v;
}

// Bytes that this kernel does not read again: the first to leave the caches.
__device__ __forceinline__ void store_streaming_if(bool wanted, void* pointer, const uint4& v) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
      "@p st.global.cs.v4.u32 [%0], {%1, %2, %3, %4}; }" ::"l"(pointer),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(static_cast<unsigned>(wanted))
      : "memory");
}

// ---- grids (programmatic dependent launch, from 9.0 on; a kernel launched without it finds nothing to wait for) ----

// Lets the next kernel's blocks take the multiprocessors that this one's leave.
__device__ __forceinline__ void launch_next_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until the kernel before this one has ended and its writes can be seen.
__device__ __forceinline__ void wait_for_previous_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace gatefold::cuda::ptx
