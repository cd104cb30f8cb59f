#include "cuda/sm90/chain.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"

namespace gatefold::cuda::sm90 {
namespace {

const ChainKernel& kernel_of(DType dtype) { return dtype == DType::bf16 ? bf16_chain_kernel() : fp16_chain_kernel(); }

}  // namespace

std::int64_t ChainState::squares_bytes(std::int64_t rows, std::int64_t columns) {
  return squares_stride(std::min(rows, most_rows)) * ceil_div(columns, tile_columns) *
         static_cast<std::int64_t>(sizeof(double));
}

bool takes_chain(const Problem& gate_up, const Problem& down, std::int64_t rows, const DeviceProperties& device) {
  constexpr std::int64_t most_columns = 1 << 20;  // more are never one round of tiles
  const std::int64_t D = gate_up.hidden_size;
  const std::int64_t F = gate_up.intermediate_size;
  if (gate_up.types.x == DType::fp32 || device.capability != 90) return false;
  if (rows > ChainState::most_rows || std::max(D, F) > most_columns || D % 8 != 0 || F % 8 != 0) return false;
  const ChainKernel& kernel = kernel_of(gate_up.types.x);
  int resident = 0;
  return kernel.resident_clusters(device, resident).ok() && resident > 0 &&
         kernel.clusters(gate_up, down, rows, resident) <= resident;
}

Status run_chain(const Chain& chain, const DeviceProperties& device, cudaStream_t stream) {
  return kernel_of(chain.gate_up.types.x).launch(chain, device, stream);
}

}  // namespace gatefold::cuda::sm90
