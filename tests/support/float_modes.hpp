#pragma once

#include <omp.h>
#include <xmmintrin.h>

#include <atomic>
#include <thread>

namespace gatefold::test {

// Floating-point environments of x86-64, by what MXCSR says.
constexpr unsigned usual_float_mode = 0x1f80;  // to nearest, every exception masked, subnormal numbers as they are

struct FloatMode {
  const char* name;
  unsigned mxcsr;
};
inline constexpr FloatMode float_modes[] = {
    {"the usual mode", usual_float_mode},
    {"subnormal numbers are zero", usual_float_mode | 0x8040},
    {"rounding down", usual_float_mode | 0x2000},
    {"rounding up", usual_float_mode | 0x4000},
    {"rounding to zero", usual_float_mode | 0x6000},
    {"all exceptions but inexact results and subnormal operands trap", 0x1100},
    {"every exception has been raised", usual_float_mode | 0x3f},
};

// work() by a new thread whose mode this is, and whose OpenMP threads inherited it when they were started. Whether its
// MXCSR is afterwards what it was before.
template <class Work>
bool in_float_mode(const FloatMode& mode, int threads, Work work) {
  bool unchanged = false;
  std::thread([&] {
    omp_set_num_threads(threads);
    _mm_setcsr(mode.mxcsr);
    std::atomic<int> started{0};  // a region without a body would be left out
#pragma omp parallel
    ++started;
    const unsigned before = _mm_getcsr();  // OpenMP's runtime may have raised a flag
    work();
    unchanged = _mm_getcsr() == before;
  }).join();
  return unchanged;
}

}  // namespace gatefold::test
