#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include <cute/numeric/numeric_types.hpp>

// The instructions of this family that CuTe has no word for, and conversions.
namespace gatefold::cuda::sm80 {

// 16 bytes to shared memory, past L1; the last 16 - bytes of them are zeros, and nothing is read for 0.
__device__ __forceinline__ void copy_async_16(std::uint32_t shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global), "r"(bytes));
}

// The same for the whole chunk at first + pass * stride if `rows` has the bit `row`, otherwise zeros, to shared +
// offset. One piece, so that the addresses of a thread's rows are not worked out ahead of the main loop, where they
// would take registers.
__device__ __forceinline__ void copy_async_16_of_row(std::uint32_t shared, int offset, const void* first,
                                                     std::int32_t stride, int pass, std::uint32_t rows,
                                                     std::uint32_t row) {
  asm volatile(
      "{\n"
      ".reg .b32 to, there;\n"
      ".reg .b64 from;\n"
      ".reg .pred ignore;\n"
      "add.u32 to, %0, %1;\n"
      "mad.wide.s32 from, %3, %4, %2;\n"
      "and.b32 there, %5, %6;\n"
      "setp.eq.u32 ignore, there, 0;\n"
      "cp.async.cg.shared.global.L2::128B [to], [from], 16, ignore;\n"
      "}\n" ::"r"(shared),
      "r"(offset), "l"(first), "r"(stride), "r"(pass), "r"(rows), "r"(row));
}

// address ^ bits, in its register: no copy of it is kept for each of the bits.
__device__ __forceinline__ void flip(std::uint32_t& address, std::uint32_t bits) {
  asm volatile("xor.b32 %0, %0, %1;\n" : "+r"(address) : "r"(bits));
}

// Ends the thread if two values are equal that never are, which ptxas can't know: it ends a basic block here, and moves
// nothing across.
__device__ __forceinline__ void keep_order(int one, int other) {
  asm volatile("{\n.reg .pred equal;\nsetp.eq.s32 equal, %0, %1;\n@equal exit;\n}\n" ::"r"(one), "r"(other));
}

// threadIdx.x, read here and now: what is derived from it is not worked out ahead of the main loop, where it would
// take registers.
__device__ __forceinline__ int thread_here() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;\n" : "=r"(thread));
  return thread;
}

// Four words of shared memory, at a multiple of 16 bytes.
__device__ __forceinline__ void load_words(std::uint32_t shared, std::int32_t& a, std::int32_t& b, std::int32_t& c,
                                           std::int32_t& d) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void store_words(std::uint32_t shared, std::int32_t a, std::int32_t b, std::int32_t c,
                                            std::int32_t d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(shared), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// Four 8 x 8 matrices of 16-bit elements (8 x 4 of 32-bit ones). CuTe's wrapper wants a generic pointer, which would
// have to be made from the address for every load.
__device__ __forceinline__ void load_matrices(std::uint32_t shared, std::uint32_t& r0, std::uint32_t& r1,
                                              std::uint32_t& r2, std::uint32_t& r3) {
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(shared));
}

// fp32 = big + small, where the tensor core reads the upper 19 bits of each as tf32. big is rounded to nearest, so
// small is below 2^-11 of the value and has 12 significant bits, of which the tensor core drops the last one: what is
// lost is below 2^-23 of the value, and small * small below 2^-22 of a product.
struct SplitFloat {
  std::uint32_t big, small;
};
__device__ __forceinline__ SplitFloat split_for_tf32(std::uint32_t bits) {
  const std::uint32_t big = (bits + 0x1000U) & 0xffffe000U;
  return {big, __float_as_uint(__uint_as_float(bits) - __uint_as_float(big))};
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

}  // namespace gatefold::cuda::sm80
