#include "cuda/sm90/cost_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gated_problem.hpp"

// How long an sm_90 kernel should take: arithmetic on the host, held against kernels made up here.
namespace gatefold::cuda::sm90 {
namespace {

constexpr double bytes_per_second = 4.3e12;
constexpr Machine h200{132, bytes_per_second};

// 128 tokens x 64 columns in clusters of two token tiles.
constexpr Config small_tile{.tile_m = 128, .tile_n = 128, .stages = 4, .cluster_m = 2, .product = Product::gate_up};

constexpr Kernel kernel_of(const Config& config, double teraflops) { return {config, teraflops, nullptr, nullptr}; }

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
                            .idle_fraction = 0.9,
                            .left_out_of_all = 0.9,
                            .left_out_of_some = 0.4,
                            .left_out_of_two = 0.2,
                            .subtile_round = 0.6,
                            .narrow_round = 0.6,
                            .narrow_together = 0.7,
                            .exposed_fraction = 0.25,
                            .most_of_average = 5.0,
                            .latency_seconds = 1.6e-6,
                            .idle_traffic = 0.0,
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
  const Kernel kernel = kernel_of({.tile_m = 256, .tile_n = 128, .stages = 5, .product = Product::gate_up}, 600.0);
  const auto rounds_more = [&](std::int64_t tiles) {
    const auto seconds = [&](std::int64_t n) { return seconds_of(kernel, gated_problem(D, n * 64), tokens, h200); };
    return (seconds(132 + tiles) - seconds(132)) / round_seconds(kernel, D);
  };
  EXPECT_GT(rounds_more(1), 0.37);
  EXPECT_LT(rounds_more(66), 0.7);  // subtile_round, and what is not hidden of its weights' traffic
  EXPECT_GT(rounds_more(67), 0.87);
  EXPECT_LT(rounds_more(132), 1.2);  // its memory traffic is not all hidden
}

// Two rows of 192 tokens leave a slab of four out of each tile, of 256 and 192 one out of half of them; of 128 and 64
// in tiles of 128, a slab of two out of half of them. 320 are 192 and 128.
TEST(CostModel, SlabsWithoutTokensSaveMostWhereAllTilesLackThem) {
  constexpr std::int64_t D = 8192;
  const auto saved = [&](int tile_m, std::int64_t full, std::int64_t tokens) {
    const Kernel kernel =
        kernel_of({.tile_m = tile_m, .tile_n = 128, .stages = 5, .cluster_n = 2, .product = Product::gate_up}, 600.0);
    const Problem problem = gated_problem(D, 66L * 64);
    const double seconds = seconds_of(kernel, problem, full, h200) - seconds_of(kernel, problem, tokens, h200);
    return seconds / round_seconds(kernel, D);
  };
  EXPECT_NEAR(saved(256, 512, 384), 0.9 / 4, 0.01);
  EXPECT_NEAR(saved(256, 512, 448), 0.4 / 8, 0.01);
  EXPECT_NEAR(saved(256, 512, 320), 0.9 / 4 + 0.4 / 8, 0.01);
  EXPECT_NEAR(saved(128, 256, 192), 0.2 / 4, 0.01);
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

// Llama 405B's columns are 208 clusters of four with tiles of 64: seven rounds of 30, eight of 29.
TEST(CostModel, CountsTheClustersOfFourThatAChipHolds) {
  const Kernel kernel = kernel_of({.tile_m = 160,
                                   .tile_n = 128,
                                   .stages = 5,
                                   .cluster_n = 4,
                                   .product = Product::gate_up,
                                   .schedule = Schedule::pingpong,
                                   .swap_ab = true},
                                  690.0);
  const Problem problem = gated_problem(16384, 53248);
  const auto seconds = [&](int clusters) {
    return seconds_of(kernel, problem, 160, {132, bytes_per_second, clusters});
  };
  EXPECT_GT(seconds(29), 1.1 * seconds(30));
  // Of the same number of rounds only what a not quite full one counts for is another.
  EXPECT_NEAR(seconds(31), seconds(30), 0.01 * seconds(30));
  EXPECT_NEAR(seconds(26), seconds(29), 0.01 * seconds(29));
  EXPECT_EQ(choose({&kernel, 1}, problem, 160, {132, bytes_per_second, 1}), &kernel);
  EXPECT_EQ(choose({&kernel, 1}, problem, 160, {132, bytes_per_second, 0}), nullptr);
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
  config.product = Product::plain;
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
  const Kernel kernel =
      kernel_of({.tile_m = 128, .tile_n = 256, .stages = 4, .cluster_m = 2, .product = Product::gate_up}, 700.0);
  const auto seconds = [&](std::int64_t block) {
    return seconds_of(kernel, gated_problem(4096, 8704, {LayoutKind::interleaved_gate_up, block}), 4096, h200);
  };
  EXPECT_EQ(seconds(64), seconds_of(kernel, gated_problem(4096, 8704), 4096, h200));
  EXPECT_GT(seconds(136), 1.5 * seconds(64));
}

// More tokens would make two rows of tiles, each of which brings all weights. By request it takes any number.
TEST(CostModel, KernelsForOneRowOfTilesTakeNoMoreTokens) {
  const Problem problem = gated_problem(4096, 14336);
  const Kernel few = kernel_of(
      {.tile_m = 64, .tile_n = 224, .stages = 5, .product = Product::gate_up, .schedule = Schedule::pingpong}, 1e9);
  const Kernel kernels[] = {kernel_of(small_tile, 600.0), few};
  for (const std::int64_t tokens : {1, 8, 63, 64}) EXPECT_EQ(choose(kernels, problem, tokens, h200), &kernels[1]);
  for (const std::int64_t tokens : {65, 72, 128}) EXPECT_EQ(choose(kernels, problem, tokens, h200), &kernels[0]);
  EXPECT_EQ(choose({&few, 1}, problem, 65, h200), &few);

  for (const Kernel& kernel : sm90::kernels(DType::bf16, Product::parts)) {
    const Config& c = kernel.config;
    EXPECT_EQ(c.for_one_row(), c.cluster() == 1) << name(c);
  }
}

// A round of 128 tiles, where tiles of 128 columns are 80.
TEST(CostModel, NarrowTilesAreTakenWhereTheyMakeOneRound) {
  for (const DType type : {DType::bf16, DType::fp16}) {
    Problem problem = plain_problem(9728, 2560);
    problem.types = ElementTypes::all(type);
    const Kernel* chosen = choose(sm90::kernels(type, Product::plain), problem, 512, h200_machine(30));
    ASSERT_NE(chosen, nullptr);
    EXPECT_EQ(name(chosen->config), "128x80 cluster 2x1");
  }
}

TEST(CostModel, TheFasterIsTakenAndOfEqualOnesTheFirst) {
  const Problem problem = gated_problem(4096, 14336);
  const Kernel equal[] = {kernel_of(small_tile, 600.0), kernel_of(small_tile, 600.0)};
  EXPECT_EQ(choose(equal, problem, 4096, h200), &equal[0]);
  const Kernel second_faster[] = {kernel_of(small_tile, 600.0), kernel_of(small_tile, 601.0)};
  EXPECT_EQ(choose(second_faster, problem, 4096, h200), &second_faster[1]);
  EXPECT_EQ(choose({}, problem, 4096, h200), nullptr);
}

}  // namespace
}  // namespace gatefold::cuda::sm90
