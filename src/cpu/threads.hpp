#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

// The OpenMP calls that the back end makes, and what they would say of a build without OpenMP.
namespace gatefold::cpu {

inline int thread_limit() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

inline int this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// Keeps what the calling task starts on one thread, while it lives. A parallel region of one thread counts as none, so
// a library inside it would share its work out again, among threads that it may not get.
class SingleThreaded {
 public:
  SingleThreaded() : limit_(thread_limit()) { set_limit(1); }
  ~SingleThreaded() { set_limit(limit_); }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  static void set_limit([[maybe_unused]] int threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
  }

  int limit_;
};

}  // namespace gatefold::cpu
