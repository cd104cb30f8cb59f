#include <gtest/gtest.h>

#include "cuda/implementations.hpp"
#include "gated_problem.hpp"

// No kernel reads Operands::row_scale: each product must refuse a problem that has one, or its sums would go unscaled.
namespace gatefold::cuda::sm90 {
namespace {

constexpr auto refusal = "takes no row_scale";

void expect_refused(Problem problem, const Implementation& implementation) {
  SCOPED_TRACE(implementation.name());
  problem.ld_x = problem.ld_up = problem.hidden_size;
  problem.ld_gate = problem.op == Op::gate_up ? problem.hidden_size : problem.intermediate_size;
  problem.ld_out = problem.intermediate_size;
  EXPECT_NE(implementation.supports(problem).reason, refusal);
  problem.row_scale = true;
  const Verdict verdict = implementation.supports(problem);
  EXPECT_FALSE(verdict.eligible);
  EXPECT_EQ(verdict.reason, refusal);
}

TEST(RowScale, IsRefusedByEveryProduct) {
  for (const Problem& problem : {gated_problem(64, 64), plain_problem(64, 64), gated_by_memory_problem(64, 64)}) {
    for (const Implementation* implementation : {sm90_products(), sm80_products()}) {
      expect_refused(problem, *implementation);
    }
  }
  const Problem interleaved = gated_problem(64, 64, {LayoutKind::interleaved_gate_up, 1});
  expect_refused(interleaved, *sm80_even_odd_gate_up());
  expect_refused(gated_problem(64, 64), *simt_gate_up());
  expect_refused(plain_problem(64, 64), *simt_gemm());
  expect_refused(gated_by_memory_problem(64, 64), *simt_gemm_gated());
}

}  // namespace
}  // namespace gatefold::cuda::sm90
