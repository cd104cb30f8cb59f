#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/common/element.cuh"

// Products of fp32 numbers that have twice an element's significant bits with numbers of the element type, by tensor
// cores and exactly: such a number is the sum of two that a tensor core takes, and its product of those is exact. Sums
// are fp32, cut off as tensor cores do (docs/numerics.md).
//
// A warp multiplies 16 rows of weights by 8 rows of s. Lane (g, t), g = lane / 4 and t = lane % 4, has columns 8 t to
// 8 t + 7 of 32: of weight rows g and g + 8 as they are stored, and of row g of s. Which of its columns an instruction
// takes for which of its own is the same for both, and so does not matter to the sum. It receives sums of weight rows g
// (c[0], c[1]) and g + 8 (c[2], c[3]) with rows 2 t and 2 t + 1 of s.
namespace gatefold::cuda::swap_ffn {

template <class Element>
struct SplitMma;

// bf16: 8 bits, and so 16 are two of them.
template <>
struct SplitMma<__nv_bfloat16> {
  static constexpr int parts_words = 8;
  struct Parts {
    std::uint32_t high[4], low[4];  // pairs of columns
  };

  __device__ __forceinline__ static Parts split(const float (&values)[8]) {
    Parts parts;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      parts.high[i] = Word<__nv_bfloat16>::pack(values + 2 * i);
      float high[2];
      Word<__nv_bfloat16>::unpack(parts.high[i], high);
      const float low[2] = {values[2 * i] - high[0], values[2 * i + 1] - high[1]};
      parts.low[i] = Word<__nv_bfloat16>::pack(low);
    }
    return parts;
  }

  __device__ __forceinline__ static void multiply(float (&c)[4], const uint4& upper, const uint4& lower,
                                                  const Parts& parts) {
    mma(c, upper.x, lower.x, upper.y, lower.y, parts.low[0], parts.low[1]);
    mma(c, upper.z, lower.z, upper.w, lower.w, parts.low[2], parts.low[3]);
    mma(c, upper.x, lower.x, upper.y, lower.y, parts.high[0], parts.high[1]);
    mma(c, upper.z, lower.z, upper.w, lower.w, parts.high[2], parts.high[3]);
  }

 private:
  __device__ __forceinline__ static void mma(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                             std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
};

// fp16: 11 bits, and so 22 are two of TF32, which has as many and fp32's range.
template <>
struct SplitMma<__half> {
  static constexpr int parts_words = 16;
  struct Parts {
    std::uint32_t high[8], low[8];
  };

  __device__ __forceinline__ static Parts split(const float (&values)[8]) {
    Parts parts;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      parts.high[i] = (__float_as_uint(values[i]) + 0x1000U) & 0xffffe000U;  // to nearest
      parts.low[i] = __float_as_uint(values[i] - __uint_as_float(parts.high[i]));
    }
    return parts;
  }

  __device__ __forceinline__ static void multiply(float (&c)[4], const uint4& upper, const uint4& lower,
                                                  const Parts& parts) {
    const Vector<__half> u = Vector<__half>::unpack(upper);
    const Vector<__half> l = Vector<__half>::unpack(lower);
#pragma unroll
    for (int i = 0; i < 8; i += 2) mma(c, u.values + i, l.values + i, parts.low + i);
#pragma unroll
    for (int i = 0; i < 8; i += 2) mma(c, u.values + i, l.values + i, parts.high + i);
  }

 private:
  __device__ __forceinline__ static void mma(float (&c)[4], const float* upper, const float* lower,
                                             const std::uint32_t* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(upper[0])), "r"(__float_as_uint(lower[0])), "r"(__float_as_uint(upper[1])),
          "r"(__float_as_uint(lower[1])), "r"(b[0]), "r"(b[1]));
  }
};

}  // namespace gatefold::cuda::swap_ffn
