#include "swap_ffn/cuda_products.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "cuda/common/device.hpp"
#include "dispatch/steps.hpp"
#include "swap_ffn/products.hpp"

namespace gatefold::swap_ffn {
namespace {

// In fp32 plain arithmetic, whose sums are rounded to nearest. Tensor cores cut them off, always towards zero, which
// adds up: sums of 1000 by sm80's three products of TF32 parts were off by 7.0e-6 of their size (relative L2, on an
// H200).
std::unique_ptr<gatefold::Executor> whole_down(const Config& c) {
  if (c.dtype == DType::fp32) {
    std::unique_ptr<gatefold::Executor> plain = kernel_step(down_product(c), "simt");
    if (plain != nullptr) return plain;
  }
  return op_step(down_product(c));
}

}  // namespace

CudaDown::CudaDown(const Config& config)
    : columns_(config.hidden_size),
      whole_(whole_down(config)),
      halves_(kernel_step(down_product(config), "sm90:128x128 cluster 1x1 split-K 2")),
      narrow_halves_(kernel_step(down_product(config), "sm90:128x64 cluster 1x1 split-K 2")) {}

std::size_t CudaDown::workspace_size(std::int64_t rows) const {
  std::size_t most = whole_->workspace_size(rows);
  for (const auto* divided : {&halves_, &narrow_halves_}) {
    if (*divided != nullptr) most = std::max(most, (*divided)->workspace_size(rows));
  }
  return most;
}

Status CudaDown::run(const Operands& operands) const {
  constexpr std::int64_t tile = 128;
  const std::int64_t tiles = ceil_div(operands.tokens, tile) * ceil_div(columns_, tile);
  const auto multiprocessors =
      std::int64_t{cuda::devices().list[static_cast<std::size_t>(operands.device)].multiprocessors};
  if (narrow_halves_ != nullptr && 4 * tiles <= multiprocessors) return narrow_halves_->run(operands);
  if (halves_ != nullptr && 2 * tiles <= multiprocessors) return halves_->run(operands);
  return whole_->run(operands);
}

}  // namespace gatefold::swap_ffn
