#pragma once

#include <vector>

#include "cuda/sm90/config.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "gated_problem.hpp"
#include "model_sizes.hpp"

namespace gatefold::cuda::sm90 {

inline const Machine h200 = h200_machine(30);
// And with fewer multiprocessors.
inline const Machine all_machines[] = {h200, {114, h200.bytes_per_second}, {78, h200.bytes_per_second}};

inline Problem problem_of(Product product, std::int64_t hidden_size, std::int64_t intermediate_size) {
  switch (product) {
    case Product::plain:
    case Product::parts: return plain_problem(hidden_size, intermediate_size);
    case Product::gate_up:
    case Product::gated_parts: return gated_problem(hidden_size, intermediate_size);
    case Product::gated_by_memory: return gated_by_memory_problem(hidden_size, intermediate_size);
  }
  return {};
}

// Of every model that the tool knows the product of gate_up or of gemm_gated, or for gemm the one with w_down.
inline std::vector<Problem> model_problems(Product product) {
  std::vector<Problem> problems;
  for (const test::ModelSize& model : test::model_sizes()) {
    const bool down = product == Product::plain;
    problems.push_back(problem_of(product, down ? model.intermediate_size : model.hidden_size,
                                  down ? model.hidden_size : model.intermediate_size));
  }
  return problems;
}

}  // namespace gatefold::cuda::sm90
