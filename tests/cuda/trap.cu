#include "trap.hpp"

#include "cuda_support.hpp"

namespace gatefold::test {
namespace {

__global__ void trap() { __trap(); }

}  // namespace

void run_into_a_trap() {
  trap<<<1, 1>>>();
  if (cudaDeviceSynchronize() == cudaSuccess) throw std::runtime_error("a trap did no harm");
  static_cast<void>(cudaGetLastError());
}

}  // namespace gatefold::test
