#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cli/backend.hpp"

// Times that can be compared: in one process, the participants take turns in rounds.
namespace gatefold::cli {

struct TimingOptions {
  int rounds = 7;
  double min_time_ms = 60.0;  // of each participant in each round, or one call where that takes longer

  void add_to(const App& app);
  void validate() const;  // throws checkpoint::InputError
};

struct Participant {
  std::string name;
  std::function<void(std::int64_t call)> enqueue;  // numbered, so that calls can rotate through buffers
};

using Samples = std::vector<double>;  // seconds of one call, one per round

// `progress` is told what is being timed. Returns the participants' samples, in their order.
std::vector<Samples> time_in_rounds(Backend& backend, const std::vector<Participant>& participants,
                                    const TimingOptions& options, const std::function<void(std::string)>& progress);

double quantile(Samples samples, double q);
inline double median(const Samples& samples) { return quantile(samples, 0.5); }

// How many times faster than the baseline: the median of the rounds' ratios.
double speed_ratio(const Samples& baseline, const Samples& samples);

}  // namespace gatefold::cli
