#pragma once

#ifdef __x86_64__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace gatefold {

// While one lives, its thread rounds to nearest, keeps subnormal numbers and takes no trap, whatever the program has
// chosen; then the thread has its own modes and exception flags again. Those are a thread's, so that what one flushes
// to zero (PyTorch's set_flush_denormal, any library linked with -ffast-math) another of the same team does not.
class UsualFloatEnvironment {
 public:
  UsualFloatEnvironment(const UsualFloatEnvironment&) = delete;
  UsualFloatEnvironment& operator=(const UsualFloatEnvironment&) = delete;

#ifdef __x86_64__
  // 8 ns together (Zen 5), where fegetenv and fesetenv take 180: they look after the x87 unit, too, which nothing here
  // uses.
  UsualFloatEnvironment() : before_(_mm_getcsr()) { _mm_setcsr(usual); }
  ~UsualFloatEnvironment() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned usual = 0x1f80;  // every exception masked, none raised
  unsigned before_;
#else
  UsualFloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~UsualFloatEnvironment() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_{};
#endif
};

}  // namespace gatefold
