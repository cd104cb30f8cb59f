#include "cuda/sm90/geometry.hpp"

#include <gtest/gtest.h>

#include "core/arithmetic.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "gated_problem.hpp"

// The parts of sums, and the limits of sizes.
namespace gatefold::cuda::sm90 {
namespace {

// With as many tokens as there may be, every kernel's tiles, shares and tokens are counted in 31 bits.
TEST(MostTokens, AreCountedByEveryKernel) {
  for (const std::int64_t columns : {8, 64, 4096, 53248, 1 << 20}) {
    const Problem problem = gated_problem(64, columns);
    const std::int64_t tokens = most_tokens(problem);
    EXPECT_LT(tokens, std::int64_t{1} << 31);
    for (const Product product : {Product::plain, Product::gate_up, Product::gated_by_memory, Product::parts}) {
      for (const Kernel& kernel : kernels(DType::bf16, product)) {
        const Config& c = kernel.config;
        const std::int64_t tiles =
            ceil_div(tokens, c.tile_m * c.cluster_m) * ceil_div(columns, std::int64_t{c.columns()} * c.cluster_n);
        EXPECT_LT(tiles * c.tiles_per_cluster(), std::int64_t{1} << 31) << name(c) << ", " << columns << " columns";
      }
    }
  }
}

// Products of which kernels in parts take some numbers of tokens undivided, some in two parts, some in eight.
const Problem divided_problems[] = {plain_problem(8192, 2048), plain_problem(14336, 4096), plain_problem(200, 1032),
                                    plain_problem(9728, 2560), plain_problem(4104, 72),    plain_problem(64, 20000)};

TEST(Parts, AreOneRoundAndEachHasSums) {
  for (const Problem& problem : divided_problems) {
    for (const Kernel& kernel : kernels(DType::bf16, Product::parts)) {
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

// What a run writes to the workspace lies in it, on every device; more tokens never ask for less.
TEST(Parts, LieInTheWorkspace) {
  for (const Problem& problem : divided_problems) {
    for (const Kernel& kernel : kernels(DType::bf16, Product::parts)) {
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
          const std::size_t bytes =
              static_cast<std::size_t>(parts * tokens * problem.intermediate_size) * sizeof(float);
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
