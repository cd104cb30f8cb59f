#include "kernels_of.hpp"

#include "support/names.hpp"

namespace gatefold::test {

std::vector<std::string> kernels_of(const Spec& spec, const std::string& implementation) {
  Desc desc{.op = spec.op, .dtype = spec.dtype, .device = GATEFOLD_DEVICE_CUDA};
  if (uses_layout(spec.op)) desc.layout = spec.layout;
  if (uses_activation(spec.op)) desc.activation = spec.activation;
  desc.hidden_size = spec.hidden_size;
  desc.intermediate_size = spec.intermediate_size;
  desc.implementation = implementation;
  try {
    std::vector<std::string> names = Plan(desc).kernels(implementation);
    for (std::string& name : names) name.insert(0, implementation + ":");
    return names.empty() ? std::vector{implementation} : names;
  } catch (const Error& error) {
    if (error.status() != GATEFOLD_ERROR_UNSUPPORTED) throw;
    return {implementation};
  }
}

}  // namespace gatefold::test
