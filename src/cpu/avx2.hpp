#pragma once

#include "cpu/cpu_info.hpp"

// Hot loops are written once, always inlined, and compiled twice: as they are, and inside a function marked
// GATEFOLD_AVX2, which may use AVX2, FMA and F16C and is called where has_avx2().
#if defined(__x86_64__) && defined(__GNUC__)
#define GATEFOLD_HAS_AVX2_COPY 1
#define GATEFOLD_AVX2 __attribute__((target("avx2,fma,f16c")))
#else
#define GATEFOLD_HAS_AVX2_COPY 0
#define GATEFOLD_AVX2
#endif
#define GATEFOLD_INLINE __attribute__((always_inline)) inline

namespace gatefold::cpu {

inline bool has_avx2() { return GATEFOLD_HAS_AVX2_COPY && features().avx2; }

}  // namespace gatefold::cpu
