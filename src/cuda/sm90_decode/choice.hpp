#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "core/arithmetic.hpp"
#include "cuda/family/few_tokens.hpp"
#include "cuda/sm90_decode/kernels.hpp"

// Which of the kernels a run takes: pure host code.
namespace gatefold::cuda::sm90_decode {

constexpr int whole_slab = Config{}.slab;
constexpr int low_slab = 32;

// The one of the fewest tiles of tokens, each of which reads the weights again; then that of the lower slabs where
// those are one round (FewTokens), or of the whole ones; then that for the fewest tokens.
inline const Kernel& choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens) {
  const int slab = problem.op == Op::gemm && FewTokens::in_halves(problem) ? low_slab : whole_slab;
  return *std::ranges::min_element(kernels, {}, [&](const Kernel& kernel) {
    const Config& c = kernel.config;
    return std::tuple(ceil_div(tokens, std::int64_t{c.tokens}), c.slab != slab, c.tokens);
  });
}

}  // namespace gatefold::cuda::sm90_decode
