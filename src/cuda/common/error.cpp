#include "cuda/common/error.hpp"

namespace gatefold::cuda {

Status status_of(cudaError_t error, const char* doing, int device) {
  if (error == cudaSuccess) return {};
  // The runtime also keeps the error for the thread's next cudaGetLastError(). It has been reported here, so it must
  // not surface in the caller's own checks a second time.
  static_cast<void>(cudaGetLastError());
  return {GATEFOLD_ERROR_DEVICE,
          concat(doing, ": device ", device, ": ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ")")};
}

}  // namespace gatefold::cuda
