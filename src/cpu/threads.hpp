#pragma once

#ifdef _OPENMP
#include <omp.h>

#include <algorithm>
#endif

// The OpenMP calls that the back end makes, and what they would say of a build without OpenMP.
namespace gatefold::cpu {

// OMP_NUM_THREADS may ask for more than OMP_THREAD_LIMIT grants.
inline int thread_limit() {
#ifdef _OPENMP
  return std::min(omp_get_max_threads(), omp_get_thread_limit());
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

// Of the threads that run what the caller runs.
inline int team_size() {
#ifdef _OPENMP
  return omp_get_num_threads();
#else
  return 1;
#endif
}

}  // namespace gatefold::cpu
