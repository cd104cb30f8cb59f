#pragma once

#include "cuda_support.hpp"

namespace gatefold::test {

// What is enqueued on a stream during a capture, under the strictest mode: a forbidden call from any thread fails.
class Graph {
 public:
  template <class Work>
  Graph(cudaStream_t stream, Work work) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    work();
    require(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    require(cudaGraphInstantiate(&replay_, graph_, 0), "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    static_cast<void>(cudaGraphExecDestroy(replay_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }
  // To the arguments of another of the same launches.
  void update(const Graph& other) {
    cudaGraphExecUpdateResultInfo info{};
    require(cudaGraphExecUpdate(replay_, other.graph_, &info), "cudaGraphExecUpdate");
  }
  void launch(cudaStream_t stream) const { require(cudaGraphLaunch(replay_, stream), "cudaGraphLaunch"); }
  std::size_t nodes() const {
    std::size_t count = 0;
    require(cudaGraphGetNodes(graph_, nullptr, &count), "cudaGraphGetNodes");
    return count;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

}  // namespace gatefold::test
