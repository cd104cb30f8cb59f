#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/float_environment.hpp"

// How work is shared out among threads: OpenMP's, or in a build without it the caller alone.
namespace gatefold::cpu {

// OMP_NUM_THREADS may ask for more than OMP_THREAD_LIMIT grants.
inline int thread_limit() {
#ifdef _OPENMP
  return std::min(omp_get_max_threads(), omp_get_thread_limit());
#else
  return 1;
#endif
}

// A thread among those that run the same at once: of a parallel region, or the caller by itself in none.
struct Team {
  int number = 0;
  int size = 1;

  // Until all have come here.
  void wait() const {
    if (size == 1) return;
#pragma omp barrier
  }

  // work(i) of this thread's part of i < count: all have equal ones.
  template <class Work>
  void take_part(std::int64_t count, Work work) const {
    const std::int64_t part = (count + size - 1) / size;
    const std::int64_t end = std::min(part * (number + 1), count);
    for (std::int64_t i = part * number; i < end; ++i) work(i);
  }
};

// False in a child that this thread, once it had led a team, forked: the child doesn't have the team's threads, and
// GCC's runtime would wait for them for ever.
bool may_lead_team();

// work(team) by so many threads, or as many as OpenMP grants. One thread makes no region: OpenMP's runtime allocates
// for each region of one, and ends the process where it can't. OpenMP's threads have the floating-point environment of
// when they were started, so each takes the usual one.
template <class Work>
void run_as_team([[maybe_unused]] int threads, Work work) {
#ifdef _OPENMP
  if (threads > 1 && may_lead_team()) {
#pragma omp parallel num_threads(threads)
    {
      const UsualFloatEnvironment environment;
      work(Team{omp_get_thread_num(), omp_get_num_threads()});
    }
    return;
  }
#endif
  work(Team{});
}

// work(i), i < count, in equal parts.
template <class Work>
void share_out(std::int64_t count, int threads, Work work) {
  run_as_team(count > 1 ? threads : 1, [&](const Team& team) { team.take_part(count, work); });
}

// The same, a few at a time to whoever is free, where some take longer than others.
template <class Work>
void share_out_dynamically(std::int64_t count, int threads, Work work) {
  constexpr std::int64_t few = 8;
  std::atomic<std::int64_t> claimed{0};
  run_as_team(count > few ? threads : 1, [&](const Team& /*team*/) {
    for (std::int64_t begin; (begin = claimed.fetch_add(few)) < count;) {
      for (std::int64_t i = begin; i < std::min(begin + few, count); ++i) work(i);
    }
  });
}

}  // namespace gatefold::cpu
