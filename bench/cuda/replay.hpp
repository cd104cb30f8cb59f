#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "rounds.hpp"

namespace gatefold::bench {

// What `work` enqueues, captured once, to be launched as one CUDA graph.
class Replay {
 public:
  explicit Replay(const std::function<void(cudaStream_t)>& work) {
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    work(stream);
    require(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    require(cudaGraphInstantiate(&replay_, graph_, 0), "cudaGraphInstantiate");
    require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay() {
    static_cast<void>(cudaGraphExecDestroy(replay_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }

  void launch(cudaStream_t stream) const { require(cudaGraphLaunch(replay_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

}  // namespace gatefold::bench
