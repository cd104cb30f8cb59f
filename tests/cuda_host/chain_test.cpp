#include "cuda/sm90/chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/kernels_by_request.hpp"
#include "gated_problem.hpp"

// Which MLPs are chained, and what the blocks of a chain take for granted of each other's tiles.
namespace gatefold::cuda::sm90 {
namespace {

constexpr int h200_clusters = 66;  // of two blocks, each of which has a multiprocessor to itself

const ChainKernel& kernel_of(DType dtype) { return dtype == DType::bf16 ? bf16_chain_kernel() : fp16_chain_kernel(); }

int clusters(std::int64_t hidden_size, std::int64_t intermediate_size, std::int64_t rows) {
  const auto of = [&](DType dtype) {
    return kernel_of(dtype).clusters(gated_problem(hidden_size, intermediate_size),
                                     plain_problem(intermediate_size, hidden_size), rows, h200_clusters);
  };
  EXPECT_EQ(of(DType::bf16), of(DType::fp16));
  return of(DType::bf16);
}

const Config& config_of(std::span<const Kernel> kernels, const std::string& wanted) {
  return std::ranges::find_if(kernels, [&](const Kernel& kernel) { return name(kernel.config) == wanted; })->config;
}

// A cluster has two of gate_up's tiles of 128 rows and 128 columns, one above the other, and one of down's of 128 x 64.
TEST(Chain, WantsAClusterForEachPairOfGateUpsTilesAndEachOfDowns) {
  EXPECT_EQ(clusters(1024, 4096, 512), 64);
  EXPECT_EQ(clusters(1024, 4096, 257), 64);
  EXPECT_EQ(clusters(1024, 4096, 256), 32);
  EXPECT_EQ(clusters(1024, 4096, 1), 32);
  EXPECT_EQ(clusters(1000, 4104, 512), 66);
  EXPECT_EQ(clusters(72, 2056, 512), 34);
  EXPECT_EQ(clusters(2056, 264, 128), 33);  // down's
  EXPECT_EQ(clusters(8, 8, 2048), 16);
  EXPECT_GT(clusters(1024, 4096, 513), h200_clusters);
}

bool taken(const Problem& gate_up, const Problem& down, std::int64_t rows, int capability) {
  DeviceProperties device{};
  device.capability = capability;
  device.multiprocessors = 132;
  return takes_chain(gate_up, down, rows, device);
}

// What needs no device to be refused.
TEST(Chain, IsForHopperAnd16BitsAndWholePieces) {
  const Problem gate_up = gated_problem(64, 128);
  const Problem down = plain_problem(128, 64);
  for (const int capability : {80, 86, 89, 100, 120}) EXPECT_FALSE(taken(gate_up, down, 128, capability));
  Problem fp32 = gate_up;
  fp32.types = ElementTypes::all(DType::fp32);
  EXPECT_FALSE(taken(fp32, down, 128, 90));
  EXPECT_FALSE(taken(gate_up, down, ChainState::most_rows + 1, 90));
  EXPECT_FALSE(taken(gated_problem(68, 128), plain_problem(128, 68), 128, 90));
  EXPECT_FALSE(taken(gated_problem(64, 100), plain_problem(100, 64), 128, 90));
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 8 * 8;
  EXPECT_FALSE(taken(gated_problem(64, huge), plain_problem(huge, 64), 128, 90));
}

// A counter is of 128 rows: tiles of both products begin at multiples of that and are whole, however many rows there
// are, so that tiles with the same first row have the same rows.
TEST(Chain, BothProductsHaveTheSameRowBlocks) {
  const Config gate_up = config_of(row_scale_kernels_of(DType::bf16), "128x256 cluster 2x1");
  const Config down = config_of(divided_plain_kernels_of(DType::bf16, true), "128x64 cluster 1x1 split-K 2");
  for (std::int64_t rows = 1; rows <= ChainState::most_rows; ++rows) {
    const Geometry above = geometry_of(gate_up, gated_problem(1024, 4096), rows, h200_clusters);
    const Geometry below = geometry_of(down, plain_problem(4096, 1024), rows, h200_clusters);
    for (const auto& [config, geometry] : {std::pair{gate_up, above}, std::pair{down, below}}) {
      ASSERT_EQ(geometry.whole_tiles, geometry.cluster_tiles(config)) << rows << " rows";
      for (int row = 0; row < geometry.m_tiles; ++row) {
        const auto left = static_cast<std::int32_t>(rows - row * ChainState::tile_rows);
        const auto there = std::min<std::int32_t>(left, ChainState::tile_rows);
        ASSERT_EQ(std::max(0, geometry.tokens_of(config, row)), std::max(0, there)) << rows << " rows";
        if (there > 0) {
          ASSERT_EQ(geometry.first_token(config, row), row * ChainState::tile_rows) << rows << " rows";
        }
        ASSERT_LT(geometry.first_token(config, row) / ChainState::tile_rows, ChainState::row_blocks) << rows << " rows";
      }
    }
  }
}

TEST(Chain, HasRoomForItsSquares) {
  EXPECT_EQ(ChainState::squares_bytes(512, 1024), 512 * 16 * 8);
  EXPECT_EQ(ChainState::squares_bytes(1, 8), 128 * 8);
  EXPECT_EQ(ChainState::squares_bytes(129, 65), 256 * 2 * 8);
  EXPECT_EQ(ChainState::squares_bytes(1 << 20, 64), ChainState::squares_bytes(ChainState::most_rows, 64));
}

}  // namespace
}  // namespace gatefold::cuda::sm90
