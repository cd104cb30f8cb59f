#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/arithmetic.hpp"
#include "cuda/implementations.hpp"
#include "cuda/kernel_grid.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "cuda/sm90/geometry.hpp"
#include "gated_problem.hpp"
#include "model_problems.hpp"

// The parts of sums, and the limits of sizes.
namespace gatefold::cuda::sm90 {
namespace {

// With as many tokens as there may be, every kernel's tiles, shares and tokens are counted in 31 bits.
TEST(MostTokens, AreCountedByEveryKernel) {
  for (const std::int64_t columns : {8, 64, 4096, 53248, 1 << 20}) {
    const Problem problem = gated_problem(64, columns);
    const std::int64_t tokens = most_tokens(problem);
    EXPECT_LT(tokens, std::int64_t{1} << 31);
    for (const Product product :
         {Product::plain, Product::gate_up, Product::gated_by_memory, Product::parts, Product::gated_parts}) {
      for (const Kernel& kernel : kernels(DType::bf16, product)) {
        const Config& c = kernel.config;
        const std::int64_t tiles =
            ceil_div(tokens, c.tile_m * c.cluster_m) * ceil_div(columns, std::int64_t{c.columns()} * c.cluster_n);
        EXPECT_LT(tiles * c.tiles_per_cluster(), std::int64_t{1} << 31) << name(c) << ", " << columns << " columns";
      }
    }
  }
}

class Parts : public testing::TestWithParam<Product> {
 public:
  static std::span<const Kernel> kernels() { return sm90::kernels(DType::bf16, GetParam()); }

  // Products of which kernels in parts take some numbers of tokens undivided, some in two parts, some in eight.
  static std::vector<Problem> divided_problems() {
    std::vector<Problem> problems;
    for (const auto& [D, F] : {std::pair{8192, 2048},
                               {14336, 4096},
                               {200, 1032},
                               {9728, 2560},
                               {4104, 72},
                               {64, 20000},
                               {17408, 5120},
                               {7168, 2048}}) {
      problems.push_back(problem_of(GetParam(), D, F));
    }
    return problems;
  }
};
INSTANTIATE_TEST_SUITE_P(Of, Parts, testing::Values(Product::parts, Product::gated_parts), [](const auto& product) {
  return std::string(product.param == Product::parts ? "gemm" : "gate_up");
});

TEST_P(Parts, AreOneRoundAndEachHasSums) {
  for (const Problem& problem : divided_problems()) {
    for (const Kernel& kernel : kernels()) {
      const Config& c = kernel.config;
      for (const std::int32_t multiprocessors : {132, 114, 78}) {
        const std::int32_t clusters = multiprocessors / c.cluster();
        for (std::int64_t tokens = 1; tokens <= 1500; tokens += tokens % 64 == 0 ? 1 : 21) {
          SCOPED_TRACE(testing::Message() << name(c) << ", " << tokens << " tokens, " << problem.hidden_size << " x "
                                          << problem.intermediate_size << ", " << clusters << " clusters");
          const Geometry g = geometry_of(c, problem, tokens, clusters);
          const std::int32_t parts = parts_of(c, problem, tokens, clusters);
          ASSERT_GE(parts, 1);
          ASSERT_LE(parts, most_parts);
          ASSERT_EQ(g.n_tiles, parts * g.part_tiles);
          EXPECT_EQ(g.part_tiles % c.cluster_n, 0);
          EXPECT_GE(std::int64_t{g.part_tiles} * c.columns(), problem.intermediate_size);
          if (parts > 1) {
            EXPECT_LE(g.work_tiles(c), clusters);
          }
          // All of the sums, and of the last part some.
          const std::int64_t steps = ceil_div(problem.hidden_size, c.tile_k());
          EXPECT_GE(std::int64_t{parts} * g.k_steps, steps);
          EXPECT_LT(std::int64_t{parts - 1} * g.k_steps, steps);
        }
      }
    }
  }
}

// Each k-step is one part's, and no other is: parts have them by turns, or in a row where sums are long or must be the
// same in any batch.
TEST_P(Parts, HaveEachKStepOnce) {
  std::vector<Problem> problems = divided_problems();
  for (const std::int64_t columns : {2048, 5120}) problems.push_back(problem_of(GetParam(), 28672, columns));
  if (GetParam() == Product::parts) {
    for (const Problem& problem : divided_problems()) {
      problems.push_back(problem);
      problems.back().batch_invariant = true;
    }
  }
  bool in_a_row = false, by_turns = false;
  for (const Problem& problem : problems) {
    for (const Kernel& kernel : kernels()) {
      const Config& c = kernel.config;
      for (const std::int64_t tokens : {1, 65, 160, 321}) {
        SCOPED_TRACE(testing::Message() << name(c) << ", " << tokens << " tokens, " << problem.hidden_size << " x "
                                        << problem.intermediate_size);
        const Geometry g = geometry_of(c, problem, tokens, h200.clusters(c));
        const std::int32_t parts = g.n_tiles / g.part_tiles;
        const std::int64_t steps = ceil_div(problem.hidden_size, c.tile_k());
        std::vector<int> times(static_cast<std::size_t>(steps));
        for (std::int32_t part = 0; part < parts; ++part) {
          for (std::int32_t step = 0; step < g.k_steps; ++step) {
            const std::int64_t at = part * g.part_offset + std::int64_t{step} * g.part_stride;
            if (at < steps) ++times[static_cast<std::size_t>(at)];
          }
        }
        EXPECT_EQ(std::ranges::count(times, 1), steps);
        in_a_row = in_a_row || (parts > 1 && g.part_stride == 1);
        by_turns = by_turns || g.part_stride > 1;
        EXPECT_TRUE(g.part_stride == 1 || !problem.batch_invariant);
      }
    }
  }
  EXPECT_TRUE(in_a_row);
  EXPECT_TRUE(by_turns);
}

// What a run writes to the workspace lies in it, on every device; more tokens never ask for less.
TEST_P(Parts, LieInTheWorkspace) {
  for (const Problem& problem : divided_problems()) {
    for (const Kernel& kernel : kernels()) {
      const Config& c = kernel.config;
      std::size_t before = 0;
      for (std::int64_t tokens = 1; tokens <= 1500; tokens += tokens % 64 == 0 ? 1 : 21) {
        SCOPED_TRACE(testing::Message() << name(c) << ", " << tokens << " tokens, " << problem.hidden_size << " x "
                                        << problem.intermediate_size);
        const std::size_t chosen = most_bytes_of_parts(c, problem, tokens, false);
        const std::size_t by_request = most_bytes_of_parts(c, problem, tokens, true);
        EXPECT_GE(chosen, before);
        before = chosen;
        for (const std::int32_t multiprocessors : {200, 132, 114, 78}) {
          const std::int32_t parts = parts_of(c, problem, tokens, multiprocessors / c.cluster());
          const std::int64_t halves = problem.op == Op::gate_up ? 2 : 1;
          const std::size_t bytes =
              static_cast<std::size_t>(parts * tokens * halves * problem.intermediate_size) * sizeof(float);
          EXPECT_LE(bytes, by_request);
          if (parts > 1) {
            EXPECT_LE(bytes, chosen);
          }
        }
        // A tile's sums of each multiprocessor, at most.
        EXPECT_LE(chosen, std::size_t{132} * c.tile_m * c.tile_n * sizeof(float));
      }
    }
  }
}

// The shapes of the tests on a GPU cut sums in every way: one part and many, of which the last has fewer k-steps, or a
// k-step that is not whole; more tiles than blocks, which only those take that are requested by name.
TEST_P(Parts, OfTheShapesOfTheTestsAreAllThatThereCanBe) {
  for (const Kernel& kernel : kernels()) {
    const Config& c = kernel.config;
    SCOPED_TRACE(name(c));
    bool undivided = false, many = false, shorter = false, torn = false, several_tiles = false;
    bool part_of_columns = false, part_of_tokens = false, rows = c.cluster_m == 1;
    for (const test::GridShape& shape : test::kernel_grid) {
      const Geometry g = geometry_of(c, problem_of(GetParam(), shape.hidden_size, shape.intermediate_size),
                                     shape.tokens, h200.clusters(c));
      const std::int32_t parts = g.n_tiles / g.part_tiles;
      const std::int64_t steps = ceil_div(shape.hidden_size, c.tile_k());
      (parts == 1 ? undivided : many) = true;
      several_tiles = several_tiles || g.work_tiles(c) > h200.clusters(c);
      if (parts == 1) continue;
      shorter = shorter || steps % g.k_steps != 0;
      torn = torn || shape.hidden_size % c.tile_k() != 0;
      part_of_columns = part_of_columns || shape.intermediate_size % c.columns() != 0;
      part_of_tokens = part_of_tokens || shape.tokens % 8 != 0;
      rows = rows || shape.tokens > c.tile_m;
    }
    EXPECT_TRUE(undivided);
    EXPECT_TRUE(many);
    EXPECT_TRUE(shorter);
    EXPECT_TRUE(torn);
    EXPECT_TRUE(several_tiles);
    EXPECT_TRUE(part_of_columns);
    EXPECT_TRUE(part_of_tokens);
    EXPECT_TRUE(rows);
  }
}

// gemm and gate_up choose among all of their kernels. In parts are only sums that are divided, and each such kernel is
// of use.
TEST_P(Parts, AreChosenWhereSumsAreDivided) {
  const Product whole = GetParam() == Product::parts ? Product::plain : Product::gate_up;
  std::vector<Kernel> all;
  for (const Product product : {whole, GetParam()}) {
    std::ranges::copy(sm90::kernels(DType::bf16, product), std::back_inserter(all));
  }
  std::vector<std::string> taken;
  for (const Problem& problem : model_problems(whole)) {
    for (const Machine& machine : all_machines) {
      for (std::int64_t tokens = 64; tokens <= 2048; tokens += 8) {
        const Config& c = choose(all, problem, tokens, machine)->config;
        if (c.product != GetParam()) continue;
        EXPECT_GT(parts_of(c, problem, tokens, machine.clusters(c)), 1) << name(c) << ", " << tokens << " tokens";
        if (machine.multiprocessors == h200.multiprocessors) taken.push_back(name(c));
      }
    }
  }
  for (const Kernel& kernel : kernels()) {
    EXPECT_TRUE(std::ranges::count(taken, name(kernel.config)) > 0) << name(kernel.config);
  }
}

// The copy engine's strides have 40 bits: what is longer is another kernel's, even of one row.
TEST(LongRows, AreLeftToOthers) {
  Problem problem = plain_problem(64, 64);
  problem.ld_x = problem.ld_up = problem.ld_out = 64;
  problem.ld_x = std::int64_t{1} << 39;
  EXPECT_EQ(sm90_products()->supports(problem).reason, "ld_x: 549755813888 elements exceed 2^40 bytes");
  problem.ld_x = 64;
  problem.ld_out = std::int64_t{1} << 40;
  EXPECT_EQ(sm90_products()->supports(problem).reason, "ld_out: 1099511627776 elements exceed 2^40 bytes");
}

}  // namespace
}  // namespace gatefold::cuda::sm90
