#pragma once

#include "cuda_support.hpp"

namespace gatefold::test {

// What is enqueued on a stream as the body of a loop on the device itself: a graph of one conditional node, as an
// engine that decodes without the host between two tokens makes it. The driver must know of these: since 12.4.
class GraphLoop {
 public:
  template <class Work>
  GraphLoop(const Stream& stream, int passes, Work work) {
    begin_body(stream);
    work();
    end_body(stream, passes);
  }
  GraphLoop(const GraphLoop&) = delete;
  GraphLoop& operator=(const GraphLoop&) = delete;
  ~GraphLoop();
  // Passes as often as it was made to, each time that it is launched.
  void launch(const Stream& stream) const;

 private:
  void begin_body(const Stream& stream);
  void end_body(const Stream& stream, int passes);

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
  cudaGraphConditionalHandle condition_{};
  int* passed_ = nullptr;  // on the device
};

}  // namespace gatefold::test
