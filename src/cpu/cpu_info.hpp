#pragma once

#include <cstdint>

#include "gatefold/gatefold.h"

namespace gatefold::cpu {

gatefold_device_info device_info();

// What the processor has and the operating system keeps for each thread.
struct Features {
  bool avx2 = false;              // with FMA and F16C
  bool avx512 = false;            // F, BW, DQ and VL
  bool avx512_bf16 = false;       // and products of bf16
  bool slow_avx512_bf16 = false;  // Intel's, of which as many terms take as long as FMA's in fp32, or longer
  bool avx512_fp16 = false;       // and arithmetic of fp16
  bool amx_bf16 = false;          // and its matrix unit, which this process may use
  bool neon = false;              // every AArch64
};
const Features& features();

// Bytes of a core's first-level data cache and of its second-level cache; 0: not known.
struct Caches {
  std::int64_t first_level = 0;
  std::int64_t second_level = 0;
};
Caches core_caches();

}  // namespace gatefold::cpu
