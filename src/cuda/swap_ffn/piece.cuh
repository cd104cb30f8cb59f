#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/arithmetic.hpp"
#include "core/status.hpp"
#include "cuda/common/element.cuh"
#include "cuda/common/specialise.hpp"

// How the kernels of a Swap-FFN step read and write rows.
namespace gatefold::cuda::swap_ffn {

// What one access moves: 16 bytes, or where a row or a pointer is no multiple of that, one element.
template <class Element, bool vectors>
struct Piece {
  static constexpr int elements = Vector<Element>::elements;
  using Raw = uint4;

  __device__ __forceinline__ static Raw load(const std::byte* row, std::int64_t piece) {
    return reinterpret_cast<const Raw*>(row)[piece];
  }
  __device__ __forceinline__ static void store(std::byte* row, std::int64_t piece, const Raw& raw) {
    reinterpret_cast<Raw*>(row)[piece] = raw;
  }
  __device__ __forceinline__ static Raw nothing() { return {0, 0, 0, 0}; }
  __device__ __forceinline__ static void unpack(const Raw& raw, float (&values)[elements]) {
    const auto v = Vector<Element>::unpack(raw);
#pragma unroll
    for (int i = 0; i < elements; ++i) values[i] = v.values[i];
  }
  __device__ __forceinline__ static Raw pack(const float (&values)[elements]) {
    Vector<Element> v;
#pragma unroll
    for (int i = 0; i < elements; ++i) v.values[i] = values[i];
    return v.pack();
  }
};

template <class Element>
struct Piece<Element, false> {
  static constexpr int elements = 1;
  using Raw = Element;

  __device__ __forceinline__ static Raw load(const std::byte* row, std::int64_t piece) {
    return reinterpret_cast<const Raw*>(row)[piece];
  }
  __device__ __forceinline__ static void store(std::byte* row, std::int64_t piece, const Raw& raw) {
    reinterpret_cast<Raw*>(row)[piece] = raw;
  }
  __device__ __forceinline__ static Raw nothing() { return from_float<Element>(0.0F); }
  __device__ __forceinline__ static void unpack(const Raw& raw, float (&values)[1]) { values[0] = to_float(raw); }
  __device__ __forceinline__ static Raw pack(const float (&values)[1]) { return from_float<Element>(values[0]); }
};

// As many neighbouring fp32 numbers.
template <int elements>
__device__ __forceinline__ void load_floats(const float* from, float (&values)[elements]) {
  if constexpr (elements % 4 == 0) {
#pragma unroll
    for (int i = 0; i < elements; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      values[i] = four.x;
      values[i + 1] = four.y;
      values[i + 2] = four.z;
      values[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < elements; ++i) values[i] = from[i];
  }
}

// Squares of fp32 are exact in double precision, and neither overflow nor underflow there.
template <int elements>
__device__ __forceinline__ double add_squares(double sum, const float (&values)[elements]) {
#pragma unroll
  for (int i = 0; i < elements; ++i) {
    sum = fma(static_cast<double>(values[i]), static_cast<double>(values[i]), sum);
  }
  return sum;
}

// Over a warp's lanes, the same in all of them.
template <class Number>
__device__ __forceinline__ Number warp_sum(Number value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  return value;
}

// 1 / sqrt(mean of squares + eps)
__device__ __forceinline__ float inverse_rms_of(double squares, std::int64_t count, double eps) {
  return static_cast<float>(1.0 / sqrt(squares / static_cast<double>(count) + eps));
}

// Whether 16-byte accesses can take rows of so many bytes at these addresses.
inline bool takes_vectors(std::int64_t row_bytes, std::initializer_list<const void*> pointers) {
  if (row_bytes % 16 != 0) return false;
  for (const void* pointer : pointers) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) return false;
  }
  return true;
}

// function(element tag, vectors tag)
template <class Function>
Status with_pieces(DType dtype, bool vectors, Function&& function) {
  return with_element(dtype, [&](auto element) -> Status {
    if (vectors) return function(element, std::true_type{});
    return function(element, std::false_type{});
  });
}

// Blocks of a launch that takes `each` of `count` things a block. A launch has at most 2^31 - 1.
inline Status block_count(std::int64_t count, std::int64_t each, unsigned& blocks) {
  const std::int64_t wanted = ceil_div(count, each);
  if (wanted > 0x7fffffff)
    return unsupported("batch: a kernel of ", wanted, " blocks, a launch has at most 2147483647");
  blocks = static_cast<unsigned>(wanted);
  return {};
}

}  // namespace gatefold::cuda::swap_ffn
