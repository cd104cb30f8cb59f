#pragma once

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

inline bool has_avx2() {
#if GATEFOLD_HAS_AVX2_COPY
  // Whatever has AVX2 has F16C too; clang can't be asked for it.
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace gatefold::cpu
