#pragma once

#include "cpu/cpu_info.hpp"

// Hot loops are written once, always inlined, and compiled up to three times: as they are, inside a function marked
// GATEFOLD_AVX2, which may use AVX2, FMA and F16C, and inside one marked GATEFOLD_AVX512, with vectors of 64 bytes.
// Which of them is called, features() says.
#if defined(__x86_64__) && defined(__GNUC__)
#define GATEFOLD_HAS_COPIES 1
#define GATEFOLD_AVX2 __attribute__((target("avx2,fma,f16c")))
#ifdef __clang__
#define GATEFOLD_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#else
#define GATEFOLD_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")))
#endif
#else
#define GATEFOLD_HAS_COPIES 0
#endif
#define GATEFOLD_INLINE __attribute__((always_inline)) inline
