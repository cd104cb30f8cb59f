#include "kernel_shapes.hpp"

#include <algorithm>

#include "kernel_grid.hpp"
#include "support/names.hpp"

namespace gatefold::test {

std::string kernel_of(const Spec& spec, const std::string& implementation) {
  Desc desc{.op = spec.op, .dtype = spec.dtype, .device = GATEFOLD_DEVICE_CUDA};
  if (uses_layout(spec.op)) desc.layout = spec.layout;
  if (uses_activation(spec.op)) desc.activation = spec.activation;
  desc.hidden_size = spec.hidden_size;
  desc.intermediate_size = spec.intermediate_size;
  desc.implementation = implementation;
  for (const Candidate& candidate : Plan(desc).explain(spec.tokens)) {
    if (candidate.chosen) return candidate.reason;
  }
  return {};
}

std::map<std::string, std::vector<Spec>> shapes_by_kernel(
    const std::function<Spec(std::int64_t T, std::int64_t D, std::int64_t F)>& spec_of,
    const std::string& implementation) {
  std::map<std::string, std::vector<Spec>> shapes;
  for (const GridShape& shape : kernel_grid()) {
    if (!thorough() && !shape.quick()) continue;
    const Spec spec = spec_of(shape.tokens, shape.hidden_size, shape.intermediate_size);
    try {
      shapes[kernel_of(spec, implementation)].push_back(spec);
    } catch (const Error& error) {
      if (error.status() != GATEFOLD_ERROR_UNSUPPORTED) throw;
    }
  }
  for (auto& [kernel, specs] : shapes) {
    std::ranges::sort(specs, {}, [](const Spec& s) { return s.tokens * s.intermediate_size; });
  }
  return shapes;
}

}  // namespace gatefold::test
