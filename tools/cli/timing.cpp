#include "cli/timing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "checkpoint/input_error.hpp"
#include "cli/options.hpp"

namespace gatefold::cli {
namespace {

class Timed {
 public:
  Timed(Backend& backend, const Participant& participant) : backend_(backend), participant_(participant) {}

  // Warms up, and finds how many calls take min_seconds.
  void calibrate(double min_seconds) {
    seconds_of(1);
    double seconds = seconds_of(1);
    std::int64_t calls = 1;
    while (seconds < min_seconds / 8 && calls < max_calls) {
      calls *= 4;
      seconds = seconds_of(calls);
    }
    const double wanted = std::ceil(static_cast<double>(calls) * min_seconds / std::max(seconds, 1e-9));
    calls_ = static_cast<std::int64_t>(std::clamp<double>(wanted, 1.0, max_calls));
  }

  double seconds_per_call() {
    if (backend_.remembers_earlier_work()) enqueue(calls_);
    return seconds_of(calls_) / static_cast<double>(calls_);
  }

 private:
  static constexpr std::int64_t max_calls = std::int64_t{1} << 20;

  void enqueue(std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) participant_.enqueue(next_call_++);
  }
  double seconds_of(std::int64_t calls) {
    return backend_.seconds([&] { enqueue(calls); });
  }

  Backend& backend_;
  const Participant& participant_;
  std::int64_t next_call_ = 0;
  std::int64_t calls_ = 1;
};

}  // namespace

void TimingOptions::add_to(const App& app) {
  app.add_option("--rounds", rounds, "Rounds in which the ways are timed by turns").capture_default_str();
  app.add_option("--min-time", min_time_ms, "Milliseconds per way and round, at least").capture_default_str();
}

void TimingOptions::validate() const {
  require_at_least("--rounds", rounds, 1);
  if (!(min_time_ms >= 0.0)) checkpoint::throw_input_error("--min-time: ", min_time_ms, " ms is less than 0");
}

std::vector<Samples> time_in_rounds(Backend& backend, const std::vector<Participant>& participants,
                                    const TimingOptions& options, const std::function<void(std::string)>& progress) {
  std::vector<Timed> timed;
  for (const Participant& participant : participants) {
    progress("warming up " + participant.name);
    timed.emplace_back(backend, participant).calibrate(options.min_time_ms * 1e-3);
  }
  std::vector<Samples> samples(participants.size());
  std::vector<std::size_t> order(timed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < options.rounds; ++round) {
    // A new order each time, so that nobody always runs on the heat of the same neighbour.
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      progress("round " + std::to_string(round + 1) + " of " + std::to_string(options.rounds) + ": " +
               participants[i].name);
      samples[i].push_back(timed[i].seconds_per_call());
    }
  }
  return samples;
}

// Linear between the neighbouring samples.
double quantile(Samples samples, double q) {
  std::sort(samples.begin(), samples.end());
  const double position = q * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (position - static_cast<double>(below)) * (samples[above] - samples[below]);
}

double speed_ratio(const Samples& baseline, const Samples& samples) {
  Samples ratios;
  for (std::size_t round = 0; round < samples.size(); ++round) ratios.push_back(baseline[round] / samples[round]);
  return median(ratios);
}

}  // namespace gatefold::cli
