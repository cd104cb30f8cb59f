#include "cli/backend.hpp"

#include "checkpoint/input_error.hpp"
#include "cli/cpu_backend.hpp"
#include "cli/options.hpp"

namespace gatefold::cli {

gatefold_device default_device() { return GATEFOLD_DEVICE_CPU; }

std::unique_ptr<Backend> make_backend(gatefold_device device) {
  if (device == GATEFOLD_DEVICE_CPU) return make_cpu_backend();
  checkpoint::throw_input_error("device: ", name_of(device), " is not one that this program can allocate memory on");
}

}  // namespace gatefold::cli
