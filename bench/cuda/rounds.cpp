#include "rounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace gatefold::bench {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    require(cudaEventCreate(&begin_), "cudaEventCreate");
    require(cudaEventCreate(&end_), "cudaEventCreate");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }

  // Milliseconds of iterations first ... first + count - 1.
  double time(const Provider& provider, int first, int count) {
    require(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (int i = first; i < first + count; ++i) provider.enqueue(i, stream_);
    require(cudaEventRecord(end_, stream_), "cudaEventRecord");
    require(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0.0F;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Warms a provider up, and finds how many iterations fill a round.
int iterations_per_round(Stopwatch& stopwatch, const Provider& provider, double milliseconds) {
  int count = 1;
  stopwatch.time(provider, 0, count);
  while (true) {
    const double took = stopwatch.time(provider, 0, count);
    if (took > milliseconds / 4.0) return std::max(1, static_cast<int>(std::ceil(count * milliseconds / took)));
    count *= 4;
  }
}

}  // namespace

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

std::vector<Timing> time_in_rounds(const std::vector<Provider>& providers, const RoundOptions& options) {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  std::vector<Timing> timings;
  {
    Stopwatch stopwatch(stream);
    std::vector<int> counts;
    for (const Provider& provider : providers) {
      counts.push_back(iterations_per_round(stopwatch, provider, options.milliseconds));
      timings.push_back({provider.name, {}});
    }
    std::vector<std::size_t> order(providers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same order in every run
    for (int round = 0; round < options.rounds; ++round) {
      // No provider always follows the same one, whose heat it would inherit.
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t p : order) {
        stopwatch.time(providers[p], round * counts[p], counts[p]);  // until clocks and power are this provider's own
        const double milliseconds = stopwatch.time(providers[p], round * counts[p], counts[p]);
        timings[p].microseconds.push_back(1000.0 * milliseconds / counts[p]);
      }
    }
  }
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return timings;
}

std::vector<double> ratios(const Timing& baseline, const Timing& provider) {
  std::vector<double> result;
  for (std::size_t i = 0; i < provider.microseconds.size(); ++i) {
    result.push_back(baseline.microseconds[i] / provider.microseconds[i]);
  }
  return result;
}

}  // namespace gatefold::bench
