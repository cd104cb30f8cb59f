#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/arithmetic.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/kernels_by_request.hpp"
#include "model_problems.hpp"

// The kernels of a batch-invariant product: whichever is taken for a number of tokens, on whatever device, a row's sums
// are divided and added up alike.
namespace gatefold::cuda::sm90 {
namespace {

constexpr std::int64_t some_tokens[] = {1, 8, 33, 64, 65, 128, 200, 256, 448, 512, 600, 1024, 4096, 65536};

Problem invariant(Problem problem) {
  problem.batch_invariant = true;
  return problem;
}

// All that gemm and gate_up choose among; of gemm_gated its own.
std::vector<Kernel> compiled(Product product) {
  const auto own = kernels(DType::bf16, product);
  std::vector<Kernel> all(own.begin(), own.end());
  if (product == Product::gate_up)
    std::ranges::copy(kernels(DType::bf16, Product::gated_parts), std::back_inserter(all));
  if (product != Product::plain) return all;
  for (const auto& more : {divided_plain_kernels_of(DType::bf16, false), kernels(DType::bf16, Product::parts),
                           adding_kernels_of(DType::bf16)}) {
    std::ranges::copy(more, std::back_inserter(all));
  }
  return all;
}

// In how many parts a kernel's sums are, and of how many k-steps each.
std::pair<int, int> division_of(const Config& c, const Geometry& g) {
  if (in_parts(c.product)) return {g.n_tiles / g.part_tiles, g.k_steps};
  if (c.adds_parts) return {ceil_div(g.k_steps, g.part_steps), g.part_steps};
  return {c.split_k, g.k_steps};
}

std::vector<Problem> problems(Product product) {
  std::vector<Problem> all = model_problems(product);
  for (const auto& [D, F] : {std::pair{8, 8}, {512, 1024}, {520, 4160}, {1160, 264}, {1160, 1032}, {4104, 2056}}) {
    all.push_back(problem_of(product, D, F));
  }
  return all;
}

class BatchInvariance : public testing::TestWithParam<Product> {};
INSTANTIATE_TEST_SUITE_P(All, BatchInvariance,
                         testing::Values(Product::plain, Product::gate_up, Product::gated_by_memory));

TEST_P(BatchInvariance, EveryKernelDividesTheSumsAlike) {
  for (const Problem& any : problems(GetParam())) {
    const Problem problem = invariant(any);
    SCOPED_TRACE(testing::Message() << problem.hidden_size << " x " << problem.intermediate_size);
    const int parts = parts_in_any_batch(problem);
    EXPECT_GE(parts, 1);
    EXPECT_LE(parts, most_parts);
    const int steps = static_cast<int>(ceil_div(problem.hidden_size, std::int64_t{64}));
    for (const Kernel& kernel : compiled(GetParam())) {
      const Config& c = kernel.config;
      if (!fits(c, problem)) continue;
      for (const int multiprocessors : {132, 114, 78}) {
        for (const std::int64_t tokens : some_tokens) {
          const auto [made, each] = division_of(c, geometry_of(c, problem, tokens, multiprocessors / c.cluster()));
          EXPECT_EQ(made, parts) << name(c) << ", " << tokens << " tokens, " << multiprocessors << " multiprocessors";
          EXPECT_EQ(each, ceil_div(steps, parts)) << name(c) << ", " << tokens << " tokens";
        }
      }
    }
  }
}

TEST_P(BatchInvariance, SomeKernelTakesEveryNumberOfTokens) {
  const std::vector<Kernel> all = compiled(GetParam());
  for (const Problem& any : problems(GetParam())) {
    const Problem problem = invariant(any);
    for (const Machine& machine : {h200_machine(30), Machine{114, 3.2e12}, Machine{78, 3.2e12}}) {
      for (const std::int64_t tokens : some_tokens) {
        SCOPED_TRACE(testing::Message() << problem.hidden_size << " x " << problem.intermediate_size << ", " << tokens
                                        << " tokens");
        const Kernel* chosen = choose(all, problem, tokens, machine);
        ASSERT_NE(chosen, nullptr);
        const Config& c = chosen->config;
        EXPECT_TRUE(fits(c, problem)) << name(c);
        if (!in_parts(c.product)) continue;
        const std::size_t bytes =
            static_cast<std::size_t>(parts_in_any_batch(problem) * tokens * problem.intermediate_size) * sizeof(float);
        EXPECT_LE(bytes, most_bytes_of_parts(c, problem, tokens, false)) << name(c);
        EXPECT_LE(bytes, std::size_t{32} << 20) << name(c);
      }
    }
  }
}

// gate_up's and gemm_gated's columns are many: nothing divides their sums.
TEST(BatchInvariantSums, AreDividedWhereColumnsAreFew) {
  const auto parts = [](std::int64_t depth, std::int64_t columns) {
    return parts_in_any_batch(plain_problem(depth, columns));
  };
  EXPECT_EQ(parts(8192, 2048), 4);    // Llama 3.2 1B's down-projection
  EXPECT_EQ(parts(8192, 3072), 5);    // 3B's
  EXPECT_EQ(parts(14336, 4096), 2);   // Llama 3.1 8B's
  EXPECT_EQ(parts(17408, 5120), 3);   // Qwen3 14B's
  EXPECT_EQ(parts(28672, 8192), 2);   // Llama 3.1 70B's
  EXPECT_EQ(parts(53248, 16384), 1);  // 405B's
  EXPECT_EQ(parts(448, 2048), 1);     // seven k-steps
  EXPECT_EQ(parts_in_any_batch(gated_problem(2048, 256)), 1);
  EXPECT_EQ(parts_in_any_batch(gated_by_memory_problem(2048, 256)), 1);
}

TEST(BatchInvariantSums, AreWhatMakesAKernelFit) {
  const auto names = [](const Problem& problem) { return sm90_products()->kernels(problem); };
  EXPECT_EQ(names(invariant(plain_problem(14336, 4096))),
            (std::vector<std::string>{"128x128 cluster 1x1 split-K 2",
                                      "128x64 cluster 1x1 split-K 2",
                                      "64x64 cluster 1x1 split-K in parts",
                                      "64x80 cluster 1x1 split-K in parts",
                                      "64x96 cluster 1x1 split-K in parts",
                                      "64x112 cluster 1x1 split-K in parts",
                                      "64x128 cluster 1x1 split-K in parts",
                                      "128x64 cluster 1x1 split-K in parts",
                                      "128x80 cluster 1x1 split-K in parts",
                                      "128x96 cluster 1x1 split-K in parts",
                                      "128x112 cluster 1x1 split-K in parts",
                                      "128x128 cluster 1x1 split-K in parts",
                                      "128x128 cluster 2x1 split-K in parts",
                                      "128x192 cluster 2x1 split-K in parts",
                                      "160x128 cluster 1x1 swap-AB split-K in parts",
                                      "192x128 cluster 1x1 swap-AB split-K in parts",
                                      "224x128 cluster 1x1 swap-AB split-K in parts",
                                      "256x128 cluster 1x1 swap-AB split-K in parts",
                                      "160x128 cluster 2x1 swap-AB split-K in parts",
                                      "160x64 cluster 1x1 swap-AB split-K in parts",
                                      "192x64 cluster 1x1 swap-AB split-K in parts",
                                      "320x128 cluster 1x2 swap-AB split-K in parts",
                                      "128x128 cluster 2x1 adding parts",
                                      "128x192 cluster 2x1 adding parts"}));
  for (const std::string& name : names(invariant(plain_problem(53248, 16384)))) {
    EXPECT_EQ(name.find("split"), std::string::npos) << name;
    EXPECT_EQ(name.find("parts"), std::string::npos) << name;
  }
  EXPECT_EQ(names(plain_problem(14336, 4096)).size(), compiled(Product::plain).size());
}

// No columns, and any number of tokens.
TEST(BatchInvariantSums, HaveAWorkspaceOfAnySize) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Config& c = kernels(DType::bf16, Product::parts).front().config;
  const Problem none = invariant(plain_problem(8192, 0));
  EXPECT_EQ(most_bytes_of_parts(c, none, most, false), 0U);
  EXPECT_NE(choose(compiled(Product::plain), none, 8, h200_machine(30)), nullptr);
  const Problem down = invariant(plain_problem(8192, 2048));
  EXPECT_EQ(most_bytes_of_parts(c, down, 64, false), std::size_t{4} * 64 * 2048 * 4);
  EXPECT_EQ(most_bytes_of_parts(c, down, most, false), std::size_t{32} << 20);
}

// Kernels that add parts are for batch-invariant problems alone, and each of them is of use there.
TEST(AddingKernels, AreTakenByBatchInvariantProblemsAlone) {
  const std::vector<Kernel> all = compiled(Product::plain);
  std::set<std::string> taken;
  for (const Problem& problem : model_problems(Product::plain)) {
    for (const std::int64_t tokens : some_tokens) {
      EXPECT_FALSE(choose(all, problem, tokens, h200_machine(30))->config.adds_parts);
      const Config& c = choose(all, invariant(problem), tokens, h200_machine(30))->config;
      if (c.adds_parts) taken.insert(name(c));
    }
  }
  EXPECT_EQ(taken.size(), adding_kernels_of(DType::bf16).size());
}

}  // namespace
}  // namespace gatefold::cuda::sm90
