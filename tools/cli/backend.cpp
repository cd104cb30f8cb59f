#include "cli/backend.hpp"

#include "checkpoint/input_error.hpp"
#include "cli/cpu_backend.hpp"
#if GATEFOLD_TOOL_WITH_CUDA
#include "cli/cuda_backend.hpp"
#endif
#include "cli/options.hpp"

namespace gatefold::cli {

gatefold_device default_device() {
#if GATEFOLD_TOOL_WITH_CUDA
  if (gatefold_device_count(GATEFOLD_DEVICE_CUDA, nullptr) > 0) return GATEFOLD_DEVICE_CUDA;
#endif
  return GATEFOLD_DEVICE_CPU;
}

std::unique_ptr<Backend> make_backend(gatefold_device device) {
  if (device == GATEFOLD_DEVICE_CPU) return make_cpu_backend();
#if GATEFOLD_TOOL_WITH_CUDA
  if (device == GATEFOLD_DEVICE_CUDA) return make_cuda_backend();
#endif
  checkpoint::throw_input_error("device: ", name_of(device), " is not one that this program can allocate memory on");
}

}  // namespace gatefold::cli
