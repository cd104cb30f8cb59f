#include "cli/instruction_set.hpp"

#include <algorithm>

namespace gatefold::cli {
namespace {

// An mlp is made of ops that the library chooses for themselves, whatever implementation of mlp was asked for.
Desc product_inside(const Desc& mlp) {
  const std::int64_t D = mlp.hidden_size;
  const std::int64_t F = mlp.intermediate_size;
  Desc product{.op = GATEFOLD_OP_GEMM, .dtype = mlp.dtype, .device = mlp.device};
  product.hidden_size = D;
  product.intermediate_size = F;
  product.ld = {.x = D, .up = D, .out = F};
  return product;
}

}  // namespace

std::string instruction_set_of(const Desc& desc, const Plan& plan, std::int64_t tokens) {
  if (desc.op == GATEFOLD_OP_ACT_AND_MUL) return {};
  std::string implementation = plan.implementation(tokens);
  if (desc.op == GATEFOLD_OP_MLP && implementation == "composed") {
    const Desc product = product_inside(desc);
    return instruction_set_of(product, Plan(product), tokens);
  }
  const auto candidates = plan.explain(tokens);
  const auto chosen = std::ranges::find(candidates, true, &Candidate::chosen);
  // The reason ends in what the kernel does: "...; avx2, panels of ...".
  for (const std::string& kernel : plan.kernels(implementation)) {
    if (chosen->reason.find("; " + kernel + ", ") != std::string::npos) return kernel;
  }
  return implementation;
}

}  // namespace gatefold::cli
