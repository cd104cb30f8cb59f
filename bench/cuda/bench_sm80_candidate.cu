#include "bench_sm80_candidates.hpp"
#include "cuda/sm80/launch.cuh"

// Candidate number GATEFOLD_BENCH_CANDIDATE.
namespace gatefold::bench {

template <>
cuda::sm80::Kernel candidate<GATEFOLD_BENCH_CANDIDATE>() {
  using Build = CandidateBuild<GATEFOLD_BENCH_CANDIDATE>;
  return {Build::config, cuda::sm80::launch<Build>};
}

}  // namespace gatefold::bench
