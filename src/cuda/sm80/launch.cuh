#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cuda/common/launch.hpp"
#include "cuda/sm80/gemm_kernel.cuh"
#include "cuda/sm80/kernels.hpp"

namespace gatefold::cuda::sm80 {

template <class Build>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config C = Build::config;
  static OncePerDevice once;
  void (*const kernel)(Params) = gemm_kernel<Build>;
  Status status = allow_shared_memory(once, reinterpret_cast<const void*>(kernel), C.shared_bytes(), device.index);
  if (!status.ok()) return status;

  const std::int64_t tiles = (operands.tokens + C.tile_m - 1) / C.tile_m *
                             ((problem.intermediate_size + C.out_columns() - 1) / C.out_columns());
  if (tiles > std::numeric_limits<std::int32_t>::max()) {
    return unsupported("tokens: ", operands.tokens, " x ", problem.intermediate_size, " takes ", tiles, " tiles, ",
                       to_string(C), " has at most ", std::numeric_limits<std::int32_t>::max());
  }
  const auto blocks = std::min(tiles, std::int64_t{device.multiprocessors} * C.blocks_per_sm);
  return launch_kernel(kernel, {dim3(static_cast<unsigned>(blocks)), dim3(C.threads()), C.shared_bytes()}, device.index,
                       stream, make_params(C, problem, operands));
}

template <class Build>
constexpr Kernel kernel_of(double teraflops) {
  return {Build::config, teraflops, launch<Build>};
}

}  // namespace gatefold::cuda::sm80
