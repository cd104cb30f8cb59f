#include "cuda/sm90/cost_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "cuda/sm90/geometry.hpp"
#include "gated_problem.hpp"
#include "kernel_grid.hpp"
#include "model_sizes.hpp"

// Which sm_90 kernel a run takes: arithmetic on the host, held against kernels made up here and against those that are
// compiled.
namespace gatefold::cuda::sm90 {
namespace {

constexpr double bytes_per_second = 4.3e12;
constexpr Machine h200{132, bytes_per_second};
constexpr Machine all_machines[] = {h200, {114, bytes_per_second}, {78, bytes_per_second}};

Problem plain_problem(std::int64_t hidden_size, std::int64_t intermediate_size) {
  Problem problem = gated_problem(hidden_size, intermediate_size, {});
  problem.op = Op::gemm;
  return problem;
}

// 128 tokens x 64 columns in clusters of two token tiles.
constexpr Config small_tile{128, 128, 4, 2, 2, 1, true, false};

constexpr Kernel kernel_of(const Config& config, double teraflops) { return {config, teraflops, nullptr}; }

// Seconds in which every multiprocessor computes one tile.
double round_seconds(const Kernel& kernel, std::int64_t hidden_size) {
  const double flops = 2.0 * kernel.config.tile_m * kernel.config.tile_n * static_cast<double>(hidden_size);
  return flops * h200.multiprocessors / (kernel.teraflops * 1e12);
}

// By round figures: what holds of the model must not hang on the latest fit.
double seconds_of(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  constexpr Figures figures{.fixed_seconds = 3e-6,
                            .cluster_seconds = 1e-6,
                            .exchange_seconds = 1e-6,
                            .exposed_epilogue_seconds = 1e-6,
                            .idle_share = 0.9,
                            .left_out_share = 0.3,
                            .half_round = 0.6,
                            .exposed_share = 0.25,
                            .most_of_share = 5.0,
                            .latency_seconds = 1.6e-6,
                            .box_seconds = 82e-9};
  return estimated_seconds(kernel, problem, tokens, machine, figures);
}

// A full round costs its arithmetic, and a little for its epilogue and memory traffic.
TEST(CostModel, AFullRoundCostsItsArithmetic) {
  constexpr Kernel kernel = kernel_of(small_tile, 600.0);
  constexpr std::int64_t D = 8192;  // so long that arithmetic, not memory, decides
  const Problem problem = gated_problem(D, 33L * 64);
  const double round = round_seconds(kernel, D);
  // 4 x 33 tiles are 66 clusters of two, as many as 132 multiprocessors hold.
  for (const std::int64_t tokens : {512, 1024, 4096}) {
    const double more = seconds_of(kernel, problem, tokens + 512, h200) - seconds_of(kernel, problem, tokens, h200);
    EXPECT_GE(more, round) << tokens;
    EXPECT_LE(more, 1.05 * round) << tokens;
  }
}

// One tile more than fills a round costs nearly another round; the rest of that round costs little.
TEST(CostModel, TheFirstTileOfARoundCostsTheMost) {
  constexpr Kernel kernel = kernel_of(small_tile, 600.0);
  constexpr std::int64_t D = 8192;
  const Problem problem = gated_problem(D, 33L * 64);
  const auto seconds = [&](std::int64_t tokens) { return seconds_of(kernel, problem, tokens, h200); };
  const double round = round_seconds(kernel, D);
  for (const std::int64_t full : {512, 1024}) {
    const double first = seconds(full + 1) - seconds(full);
    const double rest = seconds(full + 512) - seconds(full + 1);
    EXPECT_GT(first, 0.75 * round) << full;
    EXPECT_GT(rest, 0.0) << full;
    EXPECT_LT(rest, 0.3 * round) << full;
  }
}

// Where half of the multiprocessors or more would have no tile in the last round, halves of its tiles make it half a
// round.
TEST(CostModel, AFewTilesMoreAreSplit) {
  constexpr std::int64_t D = 8192;
  constexpr std::int64_t tokens = 256;
  const Kernel kernel = kernel_of({256, 128, 5, 2, 1, 1, true, false}, 600.0);
  const auto rounds_more = [&](std::int64_t tiles) {
    const auto seconds = [&](std::int64_t n) { return seconds_of(kernel, gated_problem(D, n * 64), tokens, h200); };
    return (seconds(132 + tiles) - seconds(132)) / round_seconds(kernel, D);
  };
  EXPECT_GT(rounds_more(1), 0.37);
  EXPECT_LT(rounds_more(66), 0.7);  // half_round, and what is not hidden of its weights' traffic
  EXPECT_GT(rounds_more(67), 0.87);
  EXPECT_LT(rounds_more(132), 1.2);  // its memory traffic is not all hidden
}

TEST(CostModel, FewerMultiprocessorsTakeMoreRounds) {
  constexpr Kernel kernel = kernel_of(small_tile, 600.0);
  constexpr std::int64_t D = 8192;
  const Problem problem = gated_problem(D, 33L * 64);
  const auto rounds_more = [&](int multiprocessors) {
    const Machine machine{multiprocessors, bytes_per_second};
    return (seconds_of(kernel, problem, 512, machine) - seconds_of(kernel, problem, 512, h200)) /
           round_seconds(kernel, D);
  };
  const auto expect_between = [&](int multiprocessors, double least, double most) {
    EXPECT_GE(rounds_more(multiprocessors), least) << multiprocessors;
    EXPECT_LE(rounds_more(multiprocessors), most) << multiprocessors;
  };
  expect_between(133, 0.0, 1e-9);  // the odd one has no partner
  expect_between(131, 0.7, 1.05);
  expect_between(114, 0.7, 1.05);  // 66 clusters on 57
  expect_between(78, 0.9, 1.05);   // on 39
  expect_between(64, 1.7, 2.1);    // on 32
}

// A kernel of no arithmetic takes as long as its operands take to move, 2 bytes each, where there are tiles for every
// multiprocessor.
TEST(CostModel, MemoryIsTheOtherBound) {
  constexpr std::int64_t T = 100;
  constexpr std::int64_t D = 4096;
  constexpr std::int64_t F = 4L * 66 * 64;
  const auto seconds = [&](const Kernel& kernel, const Problem& problem, double bandwidth) {
    return seconds_of(kernel, problem, T, {132, bandwidth});
  };
  const Kernel gated = kernel_of(small_tile, 1e9);
  Config config = small_tile;
  config.gated = false;
  const Kernel plain = kernel_of(config, 1e9);
  const double gated_bytes = 2.0 * (2 * F * D + T * (D + F));
  const double plain_bytes = 2.0 * (F * D + T * (D + F));
  EXPECT_NEAR(seconds(gated, gated_problem(D, F), 1e12) - seconds(gated, gated_problem(D, F), 2e12), gated_bytes / 2e12,
              1e-12);
  EXPECT_NEAR(seconds(plain, plain_problem(D, F), 1e12) - seconds(plain, plain_problem(D, F), 2e12), plain_bytes / 2e12,
              1e-12);
}

// One tile's weights come through one multiprocessor, which can't draw what all of them can.
TEST(CostModel, AFewMultiprocessorsDontUseUpTheMemory) {
  constexpr std::int64_t D = 4096;
  const Kernel kernel = kernel_of(small_tile, 1e9);
  const auto seconds = [&](std::int64_t F) { return seconds_of(kernel, gated_problem(D, F), 100, h200); };
  const double one = seconds(64);
  EXPECT_GT(one - seconds(0), 20 * 2.0 * 2 * 64 * D / bytes_per_second);
  EXPECT_NEAR(seconds(16L * 64), one, 1e-9) << "16 tiles fetch side by side what one fetches";
}

// Halves of 128 rows come in one box where the weights are interleaved by 64, in sixteen where they are by 136.
TEST(CostModel, ManyBoxesTakeLonger) {
  const Kernel kernel = kernel_of({128, 256, 4, 2, 2, 1, true, false}, 700.0);
  const auto seconds = [&](std::int64_t block) {
    return seconds_of(kernel, gated_problem(4096, 8704, {LayoutKind::interleaved_gate_up, block}), 4096, h200);
  };
  EXPECT_EQ(seconds(64), seconds_of(kernel, gated_problem(4096, 8704), 4096, h200));
  EXPECT_GT(seconds(136), 1.5 * seconds(64));
}

TEST(CostModel, TheFasterIsTakenAndOfEqualOnesTheFirst) {
  const Problem problem = gated_problem(4096, 14336);
  const Kernel equal[] = {kernel_of(small_tile, 600.0), kernel_of(small_tile, 600.0)};
  EXPECT_EQ(choose(equal, problem, 4096, h200), &equal[0]);
  const Kernel second_faster[] = {kernel_of(small_tile, 600.0), kernel_of(small_tile, 601.0)};
  EXPECT_EQ(choose(second_faster, problem, 4096, h200), &second_faster[1]);
  EXPECT_EQ(choose({}, problem, 4096, h200), nullptr);
}

// The kernels that are compiled, of each type and product.
struct Family {
  const char* name;
  DType dtype;
  bool gated;
  std::span<const Kernel> kernels() const { return sm90::kernels(dtype, gated); }
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }
constexpr Family all_families[] = {{"bf16_gate_up", DType::bf16, true},
                                   {"bf16_gemm", DType::bf16, false},
                                   {"fp16_gate_up", DType::fp16, true},
                                   {"fp16_gemm", DType::fp16, false}};

class Families : public testing::TestWithParam<Family> {};
INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(all_families),
                         [](const auto& family) { return std::string(family.param.name); });

// Where more tokens may take less time: another row of tiles joins multiprocessors to those that had to fetch the
// weights alone.
bool starts_anew(const Config& c, std::int64_t tokens) { return tokens % (std::int64_t{c.tile_m} * c.cluster_m) == 1; }

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

// gate_up's product, or for gemm the one with w_down, of every model that the tool knows.
std::vector<Problem> model_problems(bool gated) {
  std::vector<Problem> problems;
  for (const test::ModelSize& model : test::model_sizes()) {
    problems.push_back(gated ? gated_problem(model.hidden_size, model.intermediate_size)
                             : plain_problem(model.intermediate_size, model.hidden_size));
  }
  return problems;
}

constexpr std::int64_t all_tokens[] = {65, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 2048, 4096, 8192};

TEST_P(Families, TheOneOfLeastTimeIsTakenForEveryModel) {
  for (const Problem& problem : model_problems(GetParam().gated)) {
    for (const Machine& machine : all_machines) {
      for (const std::int64_t tokens : all_tokens) {
        SCOPED_TRACE(testing::Message() << "D=" << problem.hidden_size << " F=" << problem.intermediate_size
                                        << " T=" << tokens << ", " << machine.multiprocessors << " multiprocessors");
        const Kernel* taken = choose(GetParam().kernels(), problem, tokens, machine);
        ASSERT_NE(taken, nullptr);
        const double seconds = estimated_seconds(*taken, problem, tokens, machine);
        for (const Kernel& other : GetParam().kernels()) {
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
    bool split = c.halves() == 1;
    bool several_tiles = false;  // for each block
    bool empty_rows = false;
    bool part_of_a_slab = c.halves() == 1;  // the second, of a whole tile
    bool part_of_columns = false;
    for (const test::GridShape& shape : test::kernel_grid) {
      const Problem problem = GetParam().gated ? gated_problem(shape.hidden_size, shape.intermediate_size)
                                               : plain_problem(shape.hidden_size, shape.intermediate_size);
      ASSERT_TRUE(fits(c, problem));
      const Geometry g = geometry_of(c, problem, shape.tokens, clusters);
      (g.whole_tiles < g.cluster_tiles(c) ? split : whole) = true;
      several_tiles = several_tiles || g.shares(c) > clusters;
      empty_rows = empty_rows || shape.tokens % c.tile_m != 0;
      part_of_a_slab = part_of_a_slab || (g.whole_tiles > 0 && shape.tokens % c.tile_m > c.tile_m / 2);
      part_of_columns = part_of_columns || shape.intermediate_size % c.columns() != 0;
    }
    EXPECT_TRUE(whole);
    EXPECT_TRUE(split);
    EXPECT_TRUE(several_tiles);
    EXPECT_TRUE(empty_rows);
    EXPECT_TRUE(part_of_a_slab);
    EXPECT_TRUE(part_of_columns);
  }
}

// A kernel that no model takes at any length would be compiled for nothing.
TEST_P(Families, EachIsTakenForSomeModel) {
  for (const Kernel& kernel : GetParam().kernels()) {
    bool taken = false;
    for (const Problem& problem : model_problems(GetParam().gated)) {
      for (const std::int64_t tokens : all_tokens) {
        taken = taken || choose(GetParam().kernels(), problem, tokens, h200) == &kernel;
      }
    }
    EXPECT_TRUE(taken) << kernel.config.tile_m << "x" << kernel.config.tile_n << ", cluster "
                       << kernel.config.cluster();
  }
}

}  // namespace
}  // namespace gatefold::cuda::sm90
