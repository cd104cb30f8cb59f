#pragma once

#include <cstddef>

#include "core/layout.hpp"
#include "core/problem.hpp"
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

inline Bias bias_of(const Problem& problem, const Operands& operands, Half half) {
  const BiasView view = bias_view(problem, operands, half);
  return {view.base, view.map};
}

// A bias vector as `Bias`, in 32 bits: no product on tensor cores has sizes beyond 2^31, and a division of 64 bits is a
// call, around which accumulators would leave their registers.
class TileBias {
 public:
  TileBias() = default;
  TileBias(const Problem& problem, const Operands& operands, Half half)
      : TileBias(bias_of(problem, operands, half), problem.intermediate_size) {}

  __device__ bool is_there() const { return base_ != nullptr; }

  // Of column j in fp32, 0 past the last.
  template <class Element>
  __device__ float at(std::uint32_t j) const {
    if (j >= columns_) return 0.0F;
    return to_float(reinterpret_cast<const Element*>(base_)[first_ + j / block_ * period_ + j % block_]);
  }

 private:
  TileBias(const Bias& bias, std::int64_t columns)
      : base_(bias.base),
        first_(static_cast<std::uint32_t>(bias.lines.first)),
        block_(static_cast<std::uint32_t>(bias.lines.block)),
        period_(static_cast<std::uint32_t>(bias.lines.period)),
        columns_(static_cast<std::uint32_t>(columns)) {}

  const std::byte* base_ = nullptr;
  std::uint32_t first_ = 0;
  std::uint32_t block_ = 1;
  std::uint32_t period_ = 1;
  std::uint32_t columns_ = 0;  // F
};

}  // namespace gatefold::cuda
