#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

namespace gatefold::bench {

// Products alone: a loop over operands that lie in registers or shared memory, as long as the kernels' main loops would
// take for them, but without copies. One block per multiprocessor, 256 threads that multiply.
struct TensorLoop {
  std::string name;
  double flops;  // of one multiprocessor in one step
  // data: `words` words of operands; out: a float per thread.
  void (*launch)(const void* data, float* out, int multiprocessors, int steps, cudaStream_t stream);
};

inline constexpr std::size_t loop_words = std::size_t{1} << 16;  // of operands that a loop reads

TensorLoop sync_loop_in_registers();  // mma.sync, bf16, warps of 64x96: the fragments stay the same
TensorLoop sync_loop_with_reads();    // the same, fragments read by ldmatrix for every 16 of k
TensorLoop wgmma_loop_bf16();         // 256x192 out of a ring of three slots of 64 k
TensorLoop wgmma_loop_fp16();

// Clears all bits of 16-bit words but those of the mask.
void mask_words(void* data, std::size_t words, unsigned mask, cudaStream_t stream);

}  // namespace gatefold::bench
