#include "cuda/common/green_context.hpp"

#include <cuda.h>

#include "cuda/common/driver.hpp"

namespace gatefold::cuda {

bool is_in_green_context(cudaStream_t stream) {
  using GreenContextOf = CUresult (*)(CUstream, void**);  // cuda.h has the type of the second since CUDA 12.4
  static const GreenContextOf green_context_of = [] {
    GreenContextOf function = nullptr;
    find_driver_function("cuStreamGetGreenCtx", function, 12040);
    return function;
  }();
  void* green = nullptr;
  return green_context_of != nullptr && green_context_of(stream, &green) == CUDA_SUCCESS && green != nullptr;
}

}  // namespace gatefold::cuda
