#pragma once

#include "cuda/sm90/config.hpp"

namespace gatefold::cuda::sm90 {

// What tells the shapes of row_scale.cuh: the warpgroups divide their tiles as in the cooperative schedule, and only
// the epilogue differs.
inline constexpr auto row_scaled = static_cast<Schedule>(2);

}  // namespace gatefold::cuda::sm90
