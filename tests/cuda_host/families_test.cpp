#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
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

// The sm_90 kernels that are compiled: what each should take, which one is taken, and that the tests on a GPU reach all
// of it.
namespace gatefold::cuda::sm90 {
namespace {

// Gate values that the copy engine can't take go to another implementation, and the reason says so; gemm has none. (On
// a machine without a device there is another reason to refuse what it can.)
TEST(Eligibility, OfGateValuesHangsOnTheirRows) {
  const auto names_gate = [](Problem problem, std::int64_t ld_gate) {
    problem.ld_x = problem.hidden_size;
    problem.ld_up = problem.hidden_size;
    problem.ld_out = problem.intermediate_size;
    problem.ld_gate = ld_gate;
    const Verdict verdict = sm90_products()->supports(problem);
    return !verdict.eligible && verdict.reason == "ld_gate: not a multiple of 16 bytes";
  };
  const Problem problem = gated_by_memory_problem(64, 72);
  for (const std::int64_t ld : {73, 76, 79, 84}) EXPECT_TRUE(names_gate(problem, ld)) << ld;
  for (const std::int64_t ld : {72, 80, 1024}) EXPECT_FALSE(names_gate(problem, ld)) << ld;
  EXPECT_FALSE(names_gate(plain_problem(64, 72), 76));
}

// The names that --impl forces, tools/gpu/measure's step gated_tiles among them.
TEST(Eligibility, EveryKernelOfAGateInMemoryCanBeForced) {
  Problem problem = gated_by_memory_problem(4096, 14336);
  const std::vector<std::string> names = sm90_products()->kernels(problem);
  EXPECT_EQ(names, (std::vector<std::string>{"256x224 cluster 1x2 consumer-fed", "256x208 cluster 1x2 consumer-fed",
                                             "256x192 cluster 1x2", "128x256 cluster 2x1", "128x224 cluster 2x1",
                                             "128x192 cluster 2x1 pingpong", "128x160 cluster 2x1 pingpong",
                                             "128x224 cluster 1x2", "128x128 cluster 1x1 pingpong"}));
  problem.hidden_size = 128;  // two k-steps: too few where consumers request them
  EXPECT_EQ(sm90_products()->kernels(problem).size(), names.size() - 2);
}

// A layout is a matter of gate_up alone. Rows that alternate by eight come of blocks of eight.
TEST(CompiledKernels, TakeEveryBlockOfAPowerOfTwo) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    for (const Kernel& kernel : kernels(dtype, Product::gate_up)) {
      if (kernel.config.alternating) continue;
      for (std::int64_t block = 1; block <= 4096; block *= 2) {
        EXPECT_TRUE(fits_layout(kernel.config, blocks_of(block))) << kernel.config.tile_n << ", " << block;
      }
    }
  }
}

// Of two kernels alike the one that blocks don't cut: 256x224 has 7 blocks of 16 rows in a half, 256x208 six and a
// half.
TEST(CompiledKernels, AreTakenWithoutCutsWhereThatCostsLittle) {
  for (const auto& [D, F] : {std::pair{4096, 14336}, std::pair{8192, 28672}}) {
    const Problem problem = gated_problem(D, F, {LayoutKind::interleaved_gate_up, 16});
    const Config& taken = choose(kernels(DType::bf16, Product::gate_up), problem, 4096, h200)->config;
    EXPECT_EQ(strip_boxes(taken, problem).count(taken.strip_columns()), 1) << name(taken);
  }
}

// Hopper's shared memory, and its registers with the accumulators' share of them: what is left of a consumer's is for
// addresses and the epilogue. A block deals out anew what it is launched with, 168 registers for each of 384 threads,
// which is 1024 fewer than a multiprocessor has.
TEST(CompiledKernels, FitAMultiprocessor) {
  for (const Product product :
       {Product::plain, Product::gate_up, Product::gated_by_memory, Product::parts, Product::gated_parts}) {
    for (const Kernel& kernel : kernels(DType::bf16, product)) {
      const Config& c = kernel.config;
      SCOPED_TRACE(name(c));
      EXPECT_LE(c.shared_bytes(), 227 * 1024);
      const int consumers = 128 * c.warpgroups;
      if (c.has_producers()) {
        EXPECT_LE(consumers * c.consumer_registers() + 128 * c.producer_registers(), 384 * 168);
        EXPECT_LE(c.accumulators() + 32, c.consumer_registers());
      } else {
        EXPECT_LE(c.accumulators() + 31, std::min(255, 64 * 1024 / consumers));
      }
    }
  }
}

// Blocks that some tiles cut: the choice falls on another tile, however many tokens there are, or on none.
TEST(CompiledKernels, AreTakenOnlyForLayoutsThatFit) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    for (const std::int64_t block : {3, 5, 7, 11, 12, 13, 24, 28, 44, 50, 96, 1000}) {
      const auto fit = [&](const Kernel& kernel) { return fits_layout(kernel.config, blocks_of(block)); };
      const bool any = std::ranges::any_of(kernels(dtype, Product::gate_up), fit);
      for (std::int64_t tokens = 1; tokens <= 8192; tokens = tokens * 3 / 2 + 1) {
        SCOPED_TRACE(testing::Message() << "block " << block << ", " << tokens << " tokens");
        const Kernel* taken = choose(kernels(dtype, Product::gate_up), blocks_of(block), tokens, h200);
        ASSERT_EQ(taken != nullptr, any);
        EXPECT_TRUE(taken == nullptr || fit(*taken));
      }
    }
  }
}

// The kernels that are compiled, of each type and product.
struct Family {
  const char* name;
  DType dtype;
  Product product;
  std::span<const Kernel> kernels() const { return sm90::kernels(dtype, product); }
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }
constexpr Family all_families[] = {
    {"bf16_gate_up", DType::bf16, Product::gate_up},
    {"bf16_gemm", DType::bf16, Product::plain},
    {"bf16_gemm_gated", DType::bf16, Product::gated_by_memory},
    {"fp16_gate_up", DType::fp16, Product::gate_up},
    {"fp16_gemm", DType::fp16, Product::plain},
    {"fp16_gemm_gated", DType::fp16, Product::gated_by_memory},
};

class Families : public testing::TestWithParam<Family> {};
INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(all_families),
                         [](const auto& family) { return std::string(family.param.name); });

// Where more tokens may take less time: another row of tiles joins multiprocessors to those that had to fetch the
// weights alone, or there are tokens for both halves of a tile from now on, so that a last round is dealt out in
// halves.
bool starts_anew(const Config& c, std::int64_t tokens) {
  return tokens % (std::int64_t{c.tile_m} * c.cluster_m) == 1 || (c.subtiles() == 2 && tokens == c.tile_m / 2 + 1);
}

TEST_P(Families, TakeLongerForMoreTokens) {
  for (const Machine& machine : all_machines) {
    for (const Problem& problem : {gated_problem(4096, 14336), gated_problem(72, 40), gated_problem(64, 53248)}) {
      for (const Kernel& kernel : GetParam().kernels()) {
        double before = 0.0;
        for (std::int64_t tokens = 1; tokens <= 2100; ++tokens) {
          const double seconds = estimated_seconds(kernel, problem, tokens, machine);
          if (!starts_anew(kernel.config, tokens)) {
            ASSERT_GE(seconds, before) << kernel.config.tile_m << "x" << kernel.config.tile_n << ", " << tokens;
          }
          before = seconds;
        }
      }
    }
  }
}

TEST_P(Families, TakeLongerForMoreTilesOfManyWeights) {
  for (const Machine& machine : all_machines) {
    const Problem problem = gated_problem(8192, 28672);
    for (const Kernel& kernel : GetParam().kernels()) {
      double before = 0.0;
      for (std::int64_t tokens = 1; tokens <= 4100; ++tokens) {
        const double seconds = estimated_seconds(kernel, problem, tokens, machine);
        if (tokens > kernel.config.tile_m) {
          ASSERT_GE(seconds, before) << kernel.config.tile_m << "x" << kernel.config.tile_n << ", " << tokens;
        }
        before = seconds;
      }
    }
  }
}

constexpr std::int64_t all_tokens[] = {24,  64,  65,  96,  128, 144, 160, 176,  192,  200,  224,
                                       256, 320, 384, 416, 448, 512, 768, 1024, 2048, 4096, 8192};

TEST_P(Families, TheOneOfLeastTimeIsTakenForEveryModel) {
  for (const Problem& problem : model_problems(GetParam().product)) {
    for (const Machine& machine : all_machines) {
      for (const std::int64_t tokens : all_tokens) {
        SCOPED_TRACE(testing::Message() << "D=" << problem.hidden_size << " F=" << problem.intermediate_size
                                        << " T=" << tokens << ", " << machine.multiprocessors << " multiprocessors");
        const Kernel* taken = choose(GetParam().kernels(), problem, tokens, machine);
        ASSERT_NE(taken, nullptr);
        const double seconds = estimated_seconds(*taken, problem, tokens, machine);
        for (const Kernel& other : GetParam().kernels()) {
          if (!is_meant_for(other.config, tokens)) continue;
          EXPECT_LE(seconds, estimated_seconds(other, problem, tokens, machine))
              << other.config.tile_m << "x" << other.config.tile_n;
        }
      }
    }
  }
}

// What the tests on a GPU run cuts each kernel's tiles in every way, or some code would go untested.
TEST_P(Families, TheShapesOfTheTestsCutTheirTilesInEveryWay) {
  for (const Kernel& kernel : GetParam().kernels()) {
    const Config& c = kernel.config;
    SCOPED_TRACE(name(c));
    const int clusters = h200.multiprocessors / c.cluster();
    bool whole = false;
    bool split = c.subtiles() == 1;
    bool several_tiles = false;  // for each block
    bool empty_rows = false;
    bool part_of_a_slab = c.subtiles() == 1;  // the second, of a whole tile
    bool part_of_columns = false;
    bool turned = c.swap_ab || c.tile_m * c.cluster_m <= c.token_quantum();  // rows of tiles that differ
    const bool two_weights = c.product == Product::gate_up;
    const bool strips_of_columns = !two_weights || c.alternating;  // the second one's may be past the last
    bool no_columns = !strips_of_columns && c.cluster_n == 1;      // for a producer thread, all around the ring
    bool narrow_after_others = !c.may_narrow();                    // in one product
    bool idle_warpgroup = c.column_warpgroups() == 1;              // that has none of a tile's tokens
    bool part_of_a_warpgroup = c.column_warpgroups() == 1;         // of the last one's tokens
    for (const test::GridShape& shape : test::kernel_grid) {
      const Problem problem = problem_of(GetParam().product, shape.hidden_size, shape.intermediate_size);
      if (!fits(c, problem)) continue;  // shorter sums than the ring of one whose consumers request them
      const Geometry g = geometry_of(c, problem, shape.tokens, clusters);
      (g.whole_tiles < g.cluster_tiles(c) ? split : whole) = true;
      turned = turned || (g.turn != Geometry::never && g.work_tiles(c) > clusters);
      several_tiles = several_tiles || g.work_tiles(c) > clusters;
      empty_rows = empty_rows || shape.tokens % c.tile_m != 0;
      part_of_a_slab = part_of_a_slab || (g.whole_tiles > 0 && shape.tokens % c.tile_m > c.tile_m / 2);
      part_of_columns = part_of_columns || shape.intermediate_size % c.columns() != 0;
      narrow_after_others = narrow_after_others || (g.narrow_from > 0 && g.narrow_from < g.n_tiles);
      const auto in_last_row = static_cast<int>(shape.tokens % c.tile_m);
      idle_warpgroup = idle_warpgroup || (in_last_row > 0 && in_last_row <= c.warpgroup_tokens());
      part_of_a_warpgroup = part_of_a_warpgroup || in_last_row > c.warpgroup_tokens();
      const int last_strip = g.first_column(c, g.n_tiles) - (strips_of_columns ? c.strip_columns() : c.columns());
      no_columns = no_columns || (last_strip >= shape.intermediate_size && g.k_steps > c.stages);
    }
    EXPECT_TRUE(whole);
    EXPECT_TRUE(split);
    EXPECT_TRUE(several_tiles);
    EXPECT_TRUE(turned);
    EXPECT_TRUE(empty_rows);
    EXPECT_TRUE(part_of_a_slab);
    EXPECT_TRUE(part_of_columns);
    EXPECT_TRUE(no_columns);
    EXPECT_TRUE(narrow_after_others);
    EXPECT_TRUE(idle_warpgroup);
    EXPECT_TRUE(part_of_a_warpgroup);
  }
}

// Blocks that divide a tile's sums bring its tokens twice: that pays only where tiles are too few for all
// multiprocessors.
TEST(CompiledKernels, DivideSumsOfFewTilesOnly) {
  for (const Problem& problem : model_problems(Product::gate_up)) {
    for (std::int64_t tokens = 65; tokens <= 2048; tokens += 3) {
      const Config& c = choose(kernels(DType::bf16, Product::gate_up), problem, tokens, h200)->config;
      if (c.split_k == 1) continue;
      const Geometry g = geometry_of(c, problem, tokens, h200.clusters(c));
      EXPECT_LE(g.cluster_tiles(c), 2 * h200.clusters(c))
          << problem.hidden_size << " x " << problem.intermediate_size << ", " << tokens << " tokens";
    }
  }
}

// A kernel that no model takes at any length would be compiled for nothing.
TEST_P(Families, EachIsTakenForSomeModel) {
  for (const Kernel& kernel : GetParam().kernels()) {
    bool taken = false;
    for (const Problem& problem : model_problems(GetParam().product)) {
      for (const std::int64_t tokens : all_tokens) {
        taken = taken || choose(GetParam().kernels(), problem, tokens, h200) == &kernel;
      }
    }
    EXPECT_TRUE(taken) << name(kernel.config);
  }
}

}  // namespace
}  // namespace gatefold::cuda::sm90
