#include "cuda/sm90_decode/launch.cuh"

namespace gatefold::cuda::sm90_decode {
namespace {

constexpr auto gemm = kernels_of<__half, Product::gemm>();
constexpr auto gate_up = kernels_of<__half, Product::gate_up>();

}  // namespace

std::span<const Kernel> fp16_kernels(Product product) {
  return product == Product::gemm ? std::span<const Kernel>(gemm) : std::span<const Kernel>(gate_up);
}

}  // namespace gatefold::cuda::sm90_decode
