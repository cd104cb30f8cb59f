#pragma once

#include <cstddef>

#include "core/layout.hpp"
#include "cuda/common/element.cuh"

namespace gatefold::cuda {

// A bias vector in the order of a layout: element j is element lines(j) of base, which is null where there is no bias.
struct Bias {
  const std::byte* base = nullptr;
  LineMap lines;

  template <class Element>
  __device__ __forceinline__ float add_to(float sum, std::int64_t j) const {
    return base == nullptr ? sum : sum + to_float(reinterpret_cast<const Element*>(base)[lines(j)]);
  }
};

}  // namespace gatefold::cuda
