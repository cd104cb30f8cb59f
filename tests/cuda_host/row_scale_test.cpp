#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/implementations.hpp"
#include "cuda/sm90/kernels_by_request.hpp"
#include "gated_problem.hpp"

// A product that doesn't read Operands::row_scale must refuse a problem that has one, or its sums would go unscaled.
namespace gatefold::cuda::sm90 {
namespace {

constexpr auto refusal = "takes no row_scale";

Problem with_strides(Problem problem) {
  problem.ld_x = problem.ld_up = problem.hidden_size;
  problem.ld_gate = problem.op == Op::gate_up ? problem.hidden_size : problem.intermediate_size;
  problem.ld_out = problem.intermediate_size;
  return problem;
}

bool refuses(Problem problem, const Implementation& implementation) {
  problem = with_strides(problem);
  EXPECT_NE(implementation.supports(problem).reason, refusal);
  problem.row_scale = problem.weights_settled = true;
  const Verdict verdict = implementation.supports(problem);
  if (verdict.reason != refusal) return false;
  EXPECT_FALSE(verdict.eligible);
  return true;
}

TEST(RowScale, IsRefusedByProductsThatDontReadIt) {
  for (const Problem& problem : {plain_problem(64, 64), gated_by_memory_problem(64, 64)}) {
    EXPECT_TRUE(refuses(problem, *sm90_products()));
  }
  for (const Problem& problem : {gated_problem(64, 64), plain_problem(64, 64), gated_by_memory_problem(64, 64)}) {
    EXPECT_TRUE(refuses(problem, *sm80_products()));
  }
  for (const Problem& problem : {gated_problem(64, 64), plain_problem(64, 64)}) {
    EXPECT_TRUE(refuses(problem, *decode_products()));
  }
  const Problem interleaved = gated_problem(64, 64, {LayoutKind::interleaved_gate_up, 1});
  EXPECT_TRUE(refuses(interleaved, *sm80_even_odd_gate_up()));
  EXPECT_TRUE(refuses(gated_by_memory_problem(64, 64), *simt_gemm_gated()));
}

TEST(RowScale, IsTakenByGateUpOfSm90AndBySimt) {
  EXPECT_FALSE(refuses(gated_problem(64, 64), *sm90_products()));
  EXPECT_FALSE(refuses(gated_problem(64, 64), *simt_gate_up()));
  EXPECT_FALSE(refuses(plain_problem(64, 64), *simt_gemm()));
}

// Kernels of gemm that divide its sums are there by name, and nothing chooses them.
TEST(DividedSums, AreForGemmByNameAlone) {
  const Problem problem = with_strides(plain_problem(4096, 1024));
  const std::vector<std::string> names = sm90_products()->kernels(problem);
  for (const char* name : {"128x128 cluster 1x1 split-K 2", "128x64 cluster 1x1 split-K 2"}) {
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  }
  for (const Kernel& kernel : kernels(DType::bf16, Product::plain)) EXPECT_EQ(kernel.config.split_k, 1);
}

// Kernels that request weights before the kernel before has ended are for those alone who say that this is right.
TEST(SettledWeights, HaveKernelsOfTheirOwn) {
  Problem problem = with_strides(gated_problem(64, 64));
  problem.row_scale = true;
  EXPECT_EQ(sm90_products()->supports(problem).reason, "row_scale: the weights may still be written");
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    const std::span<const Kernel> settled = divided_plain_kernels_of(dtype, true);
    EXPECT_FALSE(settled.empty());
    for (const Kernel& kernel : settled) {
      for (const Kernel& other : divided_plain_kernels_of(dtype, false)) EXPECT_NE(kernel.launch, other.launch);
    }
  }
}

// With a factor the kernels are others, all of which multiply by it.
TEST(RowScale, HasKernelsOfItsOwn) {
  Problem problem = with_strides(gated_problem(1024, 4096));
  problem.row_scale = problem.weights_settled = true;
  const std::vector<std::string> names = sm90_products()->kernels(problem);
  EXPECT_EQ(names.size(), row_scale_kernels_of(DType::bf16).size());
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    EXPECT_FALSE(row_scale_kernels_of(dtype).empty());
    for (const Kernel& scaled : row_scale_kernels_of(dtype)) {
      for (const Kernel& kernel : kernels(dtype, Product::gate_up)) EXPECT_NE(kernel.launch, scaled.launch);
    }
  }
}

}  // namespace
}  // namespace gatefold::cuda::sm90
