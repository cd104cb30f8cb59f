#pragma once

#include <array>

#include "cuda/sm80/launch.hpp"

// The sm_80 configurations that bench_sm80 holds against each other. One object file each (bench_sm80_candidate.cu), so
// that they compile side by side.
namespace gatefold::bench {

using cuda::sm80::Config;
using cuda::sm80::Gating;

inline constexpr std::array candidates{
    Config{Op::gate_up, DType::bf16, Gating::groups_of_eight, 128, 256, 64, 4, 2, 4},
    Config{Op::gate_up, DType::bf16, Gating::even_odd, 128, 256, 64, 4, 2, 4},
    Config{Op::gate_up, DType::bf16, Gating::groups_of_eight, 256, 128, 64, 4, 4, 2},
    Config{Op::gate_up, DType::bf16, Gating::groups_of_eight, 192, 128, 64, 5, 4, 2},
    Config{Op::gate_up, DType::bf16, Gating::groups_of_eight, 128, 128, 64, 3, 2, 2, 2},
    Config{Op::gemm, DType::bf16, Gating::none, 128, 256, 64, 4, 2, 4},
    Config{Op::gemm_gated, DType::bf16, Gating::none, 128, 256, 64, 3, 2, 4},
    Config{Op::gate_up, DType::fp32, Gating::groups_of_eight, 128, 128, 32, 4, 2, 4},
};

template <int Index>
struct CandidateBuild {
  static constexpr Config config = candidates[Index];
};

template <int Index>
cuda::sm80::Kernel candidate();

}  // namespace gatefold::bench
