#include "cuda/swap_ffn/pass_clock.hpp"

#include <algorithm>

#include "cuda/common/error.hpp"

namespace gatefold::cuda::swap_ffn {

PassClock::PassClock(std::span<double> seconds, cudaStream_t stream, int device)
    : seconds_(seconds), stream_(stream), device_(device) {
  std::ranges::fill(seconds_, 0.0);
  if (!seconds_.empty()) mark();
}

PassClock::~PassClock() {
  for (cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
}

void PassClock::mark() {
  if (error_ != cudaSuccess) return;
  cudaEvent_t event = nullptr;
  error_ = cudaEventCreate(&event);
  if (error_ != cudaSuccess) return;
  events_.push_back(event);
  error_ = cudaEventRecord(event, stream_);
}

void PassClock::lap(int pass) {
  if (seconds_.empty()) return;
  mark();
  passes_.push_back(pass);
}

Status PassClock::finish() {
  if (seconds_.empty()) return {};
  if (error_ == cudaSuccess) error_ = cudaEventSynchronize(events_.back());
  for (std::size_t i = 0; error_ == cudaSuccess && i < passes_.size(); ++i) {
    float milliseconds = 0.0F;
    error_ = cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]);
    seconds_[static_cast<std::size_t>(passes_[i])] += static_cast<double>(milliseconds) * 1e-3;
  }
  return status_of(error_, "timing the passes", device_);
}

}  // namespace gatefold::cuda::swap_ffn
