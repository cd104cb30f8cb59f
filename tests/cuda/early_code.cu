#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "early_code.hpp"

// Compiled for two architectures (GATEFOLD_TEST_CODE names the namespace), of which the older has no wait in it.
namespace gatefold::test::GATEFOLD_TEST_CODE {
namespace {

// The next kernel may begin at once, and this one's results come late.
__global__ void doubling(const float* in, float* out, int count) {
  cuda::ptx::launch_next_grid();
  cuda::ptx::wait_for_previous_grid();
  for (int i = 0; i < 20; ++i) __nanosleep(1000);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = 2.0F * in[i];
}

}  // namespace

bool waits() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, doubling) == cudaSuccess && cuda::waits_for_previous_grid(attributes);
}

Status enqueue(const float* in, float* out, int count, int device, cudaStream_t stream) {
  constexpr unsigned threads = 256;
  return cuda::launch_kernel_early<doubling>(
      {.grid = dim3((static_cast<unsigned>(count) + threads - 1) / threads), .block = dim3(threads)}, device, stream,
      in, out, count);
}

}  // namespace gatefold::test::GATEFOLD_TEST_CODE
