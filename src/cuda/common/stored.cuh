#pragma once

#include <cute/tensor.hpp>

#include "cuda/common/element.cuh"

// CuTe's element types as CUDA's headers, and so element.cuh, name them.
namespace gatefold::cuda {

template <class Element>
struct StoredAs {
  using Type = Element;
};
template <>
struct StoredAs<cute::bfloat16_t> {
  using Type = __nv_bfloat16;
};
template <>
struct StoredAs<cute::half_t> {
  using Type = __half;
};

template <class Element>
using Stored = typename StoredAs<Element>::Type;

}  // namespace gatefold::cuda
