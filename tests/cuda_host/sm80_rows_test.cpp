#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cuda/sm80/layout_fit.hpp"
#include "cuda/sm80/shapes.hpp"
#include "cuda/sm80/weight_rows.hpp"
#include "sm80_problem.hpp"

// Which rows a run of sm_80's reads, and which kernel can follow them: arithmetic on the host.
namespace gatefold::cuda::sm80 {
namespace {

// --- weight rows ---

TEST(Sm80Rows, DivisionByMultiplication) {
  std::mt19937_64 random(20'261'121);
  const std::uint32_t edges[] = {1, 2, 3, 5, 7, 8, 24, 96, 1000, 14336, 65535, 65536, 65537, 0x40000001, 0x7fffffff};
  std::vector<std::uint32_t> divisors(std::begin(edges), std::end(edges));
  for (int i = 0; i < 200; ++i) divisors.push_back(1 + static_cast<std::uint32_t>(random() >> (33 + i % 31)));
  for (const std::uint32_t divisor : divisors) {
    const Divider divide(divisor);
    const auto expect = [&](std::uint64_t n) {
      if (n > 0x7fffffff) return;
      ASSERT_EQ(divide(static_cast<std::uint32_t>(n)), n / divisor) << n << " / " << divisor;
    };
    for (std::uint64_t multiple = 0; multiple <= 0x7fffffff;
         multiple += divisor * std::max<std::uint64_t>(1, (0x7fffffff / divisor) / 64)) {
      if (multiple > 0) expect(multiple - 1);
      expect(multiple);
      expect(multiple + 1);
    }
    expect(0x7fffffff);
  }
}

TEST(Sm80Rows, WeightRowsFollowTheLayout) {
  constexpr std::int64_t F = 96;
  for (const Layout layout :
       {Layout{LayoutKind::gate_up, 0}, Layout{LayoutKind::up_gate, 0}, Layout{LayoutKind::interleaved_gate_up, 1},
        Layout{LayoutKind::interleaved_up_gate, 8}, Layout{LayoutKind::interleaved_gate_up, 24}}) {
    for (const Half half : {Half::gate, Half::up}) {
      const LineMap map = layout.map(half, F);
      const WeightRows rows(nullptr, map, 128);
      for (std::int64_t j = 0; j < F; ++j) {
        EXPECT_EQ(map.first + rows.row(static_cast<std::uint32_t>(j)), map(j));
      }
    }
  }
}

// --- which layouts a kernel follows ---

// Whether LineLoader's way to a weight row, a first one and equal steps, leads to the layout's, in every tile.
bool steps_are_even(const Config& c, const Layout& layout, std::int64_t F) {
  for (const Half half : {Half::gate, Half::up}) {
    const WeightRows rows(nullptr, layout.map(half, F), 1);
    for (std::int64_t tile = 0; tile < F; tile += c.out_columns()) {
      for (std::int64_t first = tile; first < tile + c.lines_per_pass(); ++first) {
        for (std::int64_t j = first, step = 0; j < std::min(F, tile + c.out_columns()); j += c.lines_per_pass()) {
          const std::int64_t reached =
              rows.row(static_cast<std::uint32_t>(first)) + step++ * rows.stride(c.lines_per_pass());
          if (reached != rows.row(static_cast<std::uint32_t>(j))) return false;
        }
      }
    }
  }
  return true;
}

// Whether the box that the copy engine brings of each half of a tile is the layout's rows, one after the other: a box
// of whole blocks, or of rows within one, from where the tile's first row lies in its block (encode_strip of
// tensor_map.hpp).
template <int thirds>
bool boxes_are_whole(const Config& c, const Layout& layout, std::int64_t F) {
  const std::int64_t box_rows = c.out_columns() / 3 * thirds;
  for (const Half half : {Half::gate, Half::up}) {
    const LineMap map = layout.map(half, F);
    const std::int64_t in_block = layout.interleaved() ? std::min(map.block, box_rows) : box_rows;
    if (box_rows % in_block != 0) return false;
    for (std::int64_t tile = 0; tile < F; tile += box_rows) {
      for (std::int64_t i = 0; i < std::min(F - tile, box_rows); ++i) {
        const std::int64_t row = tile % map.block + i % in_block;
        const std::int64_t repetition = tile / map.block + i / in_block;
        if (row >= map.block || map(repetition * map.block + row) != map(tile + i)) return false;
      }
    }
  }
  return true;
}

// Whether those layouts `fit` a kernel that it follows.
void expect_layouts(const Config& config, bool (*fits)(const Config&, const Problem&),
                    bool (*follows)(const Config&, const Layout&, std::int64_t)) {
  constexpr std::int64_t F = 3072;
  for (const LayoutKind kind : {LayoutKind::separate, LayoutKind::gate_up, LayoutKind::up_gate}) {
    EXPECT_TRUE(fits(config, problem(Op::gate_up, 64, F, {kind, 0}))) << to_string(kind);
    EXPECT_TRUE(follows(config, {kind, 0}, F)) << to_string(kind);
  }
  for (const std::int64_t block : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768}) {
    const Layout layout{LayoutKind::interleaved_up_gate, block};
    EXPECT_EQ(fits(config, problem(Op::gate_up, 64, F, layout)), follows(config, layout, F))
        << name(config) << ", blocks of " << block;
  }
}

TEST(Sm80Rows, LineLoaderTakesEvenDistances) {
  expect_layouts(Large<Op::gate_up, DType::bf16>::config, fits_layout, steps_are_even);
}

template <int thirds>
bool fits_thirds(const Config& config, const Problem& problem) {
  return fits_narrow(config, problem, thirds);
}

TEST(Sm80Rows, BoxLoaderTakesWholeBlocks) {
  constexpr Config tall = Tall<Op::gate_up, DType::fp16>::config;
  expect_layouts(tall, fits_layout, boxes_are_whole<3>);
  expect_layouts(tall, fits_thirds<2>, boxes_are_whole<2>);
  expect_layouts(tall, fits_thirds<1>, boxes_are_whole<1>);
}

TEST(Sm80Rows, BoxLoaderTakesEveryTailAndStridesOfFortyBits) {
  const Config tall = Tall<Op::gate_up, DType::bf16>::config;
  EXPECT_TRUE(fits_layout(tall, problem(Op::gate_up, 4093, 64)));
  constexpr std::int64_t longest = (std::int64_t{1} << 40) / 2 - 8;  // elements
  for (const auto ld : {&Problem::ld_x, &Problem::ld_gate, &Problem::ld_up}) {
    Problem p = problem(Op::gate_up, 64, 64);
    p.*ld = longest;
    EXPECT_TRUE(fits_layout(tall, p));
    p.*ld = longest + 8;
    EXPECT_FALSE(fits_layout(tall, p));
    p = problem(Op::gate_up, 64, 64, {LayoutKind::interleaved_gate_up, 8});
    p.*ld = longest / 16;  // sixteen rows from a block of gate's to the next
    EXPECT_TRUE(fits_layout(tall, p));
    p.*ld = longest / 16 + 8;
    EXPECT_FALSE(fits_layout(tall, p));
  }
}

TEST(Sm80Rows, LineLoaderTakesWholeChunksAndShortRows) {
  constexpr Config large = Large<Op::gemm, DType::bf16>::config;
  EXPECT_TRUE(fits_layout(large, problem(Op::gemm, 72, 64)));
  EXPECT_FALSE(fits_layout(large, problem(Op::gemm, 76, 64)));
  EXPECT_TRUE(fits_layout(Small<Op::gemm, DType::bf16>::config, problem(Op::gemm, 76, 64)));
  constexpr std::int64_t longest = (std::int64_t{1} << 31) / 32 / 2 - 8;  // elements: 32 rows below 2^31 bytes
  for (const auto ld : {&Problem::ld_x, &Problem::ld_gate, &Problem::ld_up}) {
    Problem p = problem(Op::gate_up, 64, 64);
    p.*ld = longest;
    EXPECT_TRUE(fits_layout(Large<Op::gate_up, DType::bf16>::config, p));
    p.*ld = longest + 8;
    EXPECT_FALSE(fits_layout(Large<Op::gate_up, DType::bf16>::config, p));
    EXPECT_TRUE(fits_layout(LargeAnyOrder<DType::bf16>::config, p));
  }
  Problem gated = problem(Op::gemm_gated, 64, 64);
  gated.ld_gate = longest + 8;  // of the gate values, which the epilogue reads
  EXPECT_TRUE(fits_layout(Large<Op::gemm_gated, DType::bf16>::config, gated));
}

}  // namespace
}  // namespace gatefold::cuda::sm80
