#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "quantile.hpp"

// Timing as DESIGN.md section 7 has it: providers take turns in rounds, so that drifts of clock and temperature fall on
// all of them, and each first runs as long untimed, since the one before it leaves its clocks and heat; what is
// reported are medians, and medians of the ratios within a round.
namespace gatefold::bench {

// What is timed: enqueues iteration `i` on the stream. Different iterations work on different buffers.
struct Provider {
  std::string name;
  std::function<void(int i, cudaStream_t stream)> enqueue;
};

struct RoundOptions {
  int rounds = 15;
  double milliseconds = 50.0;  // of each provider in each round, at least
};

struct Timing {
  std::string name;
  std::vector<double> microseconds;  // one mean per round
};

std::vector<Timing> time_in_rounds(const std::vector<Provider>& providers, const RoundOptions& options);

// baseline / provider, round by round: above 1 where the provider is faster.
std::vector<double> ratios(const Timing& baseline, const Timing& provider);

// Throws std::runtime_error with the error's name.
void require(cudaError_t error, const char* what);

}  // namespace gatefold::bench
