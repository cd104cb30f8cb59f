#include "cpu/loops/avx512_outer.hpp"
#include "cpu/loops/avx512_products.hpp"

namespace gatefold::cpu {
namespace {

constexpr Kernel kernels[] = {make_outer_kernel<Float>("avx512", DType::fp32, 48),
                              make_kernel<Fp16>("avx512", DType::fp16), make_kernel<BFloat>("avx512", DType::bf16)};

}  // namespace

KernelList avx512_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
