#include "cpu/loops/kernel.hpp"

#include "cpu/cpu_info.hpp"

namespace gatefold::cpu {
namespace {

using Kernels = std::vector<const Kernel*>;

Kernels find_kernels(DType dtype) {
  Kernels found;
  const auto add = [&](const KernelList& list) {
    for (int i = 0; i < list.count; ++i) {
      if (list.first[i].dtype == dtype) found.push_back(list.first + i);
    }
  };
#if defined(__x86_64__)
  if (features().amx_bf16) add(amx_bf16_kernels());
  if (features().amx_bf16) add(amx_parts_kernels());
  // Where vdpbf16ps is slow, bf16 in fp32 is up to 1.7 times as fast (docs/kernels/cpu_log.md).
  if (features().avx512_bf16 && !features().slow_avx512_bf16) add(avx512_bf16_kernels());
  if (features().avx512) add(avx512_kernels());
  if (features().slow_avx512_bf16) add(avx512_bf16_kernels());
  if (features().avx2) add(avx2_kernels());
#elif defined(__aarch64__)
  add(neon_kernels());
#endif
  add(portable_kernels());
  return found;
}

}  // namespace

const Kernels& kernels_for(DType dtype) {
  static const Kernels fp32 = find_kernels(DType::fp32);
  static const Kernels fp16 = find_kernels(DType::fp16);
  static const Kernels bf16 = find_kernels(DType::bf16);
  return dtype == DType::fp32 ? fp32 : dtype == DType::fp16 ? fp16 : bf16;
}

}  // namespace gatefold::cpu
