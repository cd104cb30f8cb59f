#include "support/kernels_of.hpp"

#include "support/names.hpp"

namespace gatefold::test {

namespace {

// As Experiment lays the operands out, from the sizes alone.
LeadingDimensions leading_dimensions(const Spec& spec) {
  const std::int64_t D = spec.hidden_size;
  const std::int64_t F = spec.intermediate_size;
  const bool second_weight = !uses_layout(spec.op) || !spec.layout.packed();
  LeadingDimensions ld{.x = D + spec.padding.x, .out = F + spec.padding.out};
  if (spec.op == GATEFOLD_OP_GATE_UP) ld.gate = D + spec.padding.gate;
  if (spec.op == GATEFOLD_OP_GEMM_GATED) ld.gate = F + spec.padding.gate;
  if (second_weight) ld.up = D + spec.padding.up;
  return ld;
}

}  // namespace

std::vector<std::string> kernels_of(const Spec& spec, const std::string& implementation) {
  Desc desc{.op = spec.op, .dtype = spec.dtype, .device = device_memory().device()};
  if (uses_layout(spec.op)) desc.layout = spec.layout;
  if (uses_activation(spec.op)) desc.activation = spec.activation;
  desc.hidden_size = spec.hidden_size;
  desc.intermediate_size = spec.intermediate_size;
  desc.ld = leading_dimensions(spec);
  desc.implementation = implementation;
  desc.biases = biases_of(spec);
  desc.batch_invariant = spec.batch_invariant;
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
