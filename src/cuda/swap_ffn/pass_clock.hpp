#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "core/status.hpp"

namespace gatefold::cuda::swap_ffn {

// Adds up, pass by pass, the time that a stream takes for what is enqueued between two laps. Events between the kernels
// keep them from overlapping, and reading them waits for the stream: for a step that is looked at, not for one that is
// run. Without seconds it does nothing.
class PassClock {
 public:
  PassClock(std::span<double> seconds, cudaStream_t stream, int device);
  PassClock(const PassClock&) = delete;
  PassClock& operator=(const PassClock&) = delete;
  ~PassClock();

  void lap(int pass);  // what was enqueued since the lap before, or the beginning
  Status finish();     // waits, and fills in the seconds

 private:
  void mark();

  std::span<double> seconds_;
  cudaStream_t stream_;
  int device_;
  std::vector<cudaEvent_t> events_;  // one more than passes_
  std::vector<int> passes_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace gatefold::cuda::swap_ffn
