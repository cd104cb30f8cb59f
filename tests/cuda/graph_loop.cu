#include "graph_loop.hpp"

namespace gatefold::test {
namespace {

__global__ void count_pass(int* passed, int passes, cudaGraphConditionalHandle condition) {
  if (++*passed < passes) return;
  *passed = 0;
  cudaGraphSetConditional(condition, 0);
}

}  // namespace

void GraphLoop::begin_body(const Stream& stream) {
  require(cudaMalloc(&passed_, sizeof(int)), "cudaMalloc");
  require(cudaMemset(passed_, 0, sizeof(int)), "cudaMemset");
  require(cudaDeviceSynchronize(), "cudaMemset");
  require(cudaGraphCreate(&graph_, 0), "cudaGraphCreate");
  require(cudaGraphConditionalHandleCreate(&condition_, graph_, 1, cudaGraphCondAssignDefault),
          "cudaGraphConditionalHandleCreate");
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition_;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
  require(cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params), "cudaGraphAddNode");
#else
  require(cudaGraphAddNode(&node, graph_, nullptr, 0, &params), "cudaGraphAddNode");
#endif
  require(cudaStreamBeginCaptureToGraph(stream.get(), params.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                        cudaStreamCaptureModeGlobal),
          "cudaStreamBeginCaptureToGraph");
}

void GraphLoop::end_body(const Stream& stream, int passes) {
  count_pass<<<1, 1, 0, stream.get()>>>(passed_, passes, condition_);
  require(cudaGetLastError(), "count_pass");
  cudaGraph_t body = nullptr;
  require(cudaStreamEndCapture(stream.get(), &body), "cudaStreamEndCapture");
  require(cudaGraphInstantiate(&replay_, graph_, 0), "cudaGraphInstantiate");
}

GraphLoop::~GraphLoop() {
  static_cast<void>(cudaGraphExecDestroy(replay_));
  static_cast<void>(cudaGraphDestroy(graph_));
  static_cast<void>(cudaFree(passed_));
}

void GraphLoop::launch(const Stream& stream) const {
  require(cudaGraphLaunch(replay_, stream.get()), "cudaGraphLaunch");
}

}  // namespace gatefold::test
