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

// Of the threads that run what the caller runs.
inline int team_size() {
#ifdef _OPENMP
  return omp_get_num_threads();
#else
  return 1;
#endif
}

}  // namespace gatefold::cpu
