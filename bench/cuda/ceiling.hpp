#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace gatefold::bench {

// Products and the copies that they need, side by side, on all of a Hopper's multiprocessors: tensor cores multiply
// bf16 operands that lie in shared memory all the time, while the copy engine brings weights, once each from memory, to
// a ring that nobody reads. Neither waits for the other, and one launch does for all layers. So no kernel that
// multiplies by wgmma and reads its weights takes less time, or less power. What else a kernel must do is left out:
// tokens unless asked for, waits, sums, activations. sink: ceiling_sink_bytes, which is written.
struct Buffer {
  const void* data;
  std::size_t bytes;  // a multiple of 16
};
struct Ceiling {
  double flops;                 // rounded down to steps of 6.3 million on each multiprocessor
  std::vector<Buffer> weights;  // 32 at most; none: products alone
  double again = 0;             // bytes that come from L2 beside each byte of weights
  Buffer tokens;                // of which these are; 16 KiB at least
  const void* operands;         // loop_words words, of which products are formed
  void* sink;
};
void run_ceiling(const Ceiling& ceiling, int multiprocessors, cudaStream_t stream);
constexpr std::size_t ceiling_sink_bytes(int multiprocessors) {
  return static_cast<std::size_t>(multiprocessors) * 1024;
}

}  // namespace gatefold::bench
