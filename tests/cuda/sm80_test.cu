#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "cuda/sm80/cost_model.hpp"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/shapes.hpp"
#include "cuda/sm80/tile_layouts.hpp"
#include "cuda/sm80/weight_rows.hpp"

// What the sm_80 kernels are built from, where no GPU is needed: CuTe's algebra runs on the host.
namespace gatefold::cuda::sm80 {
namespace {

// --- where gate and up meet ---

// For every thread and every element of its output fragment: the accumulators that the epilogue pairs up are gate and
// up of the very element of the output tile that the fragment stands for, and each element of the tile comes up once.
template <class Build>
void expect_halves_meet() {
  using namespace cute;
  constexpr Config C = Build::config;
  using Layouts = TileLayouts<C>;
  const auto product = make_identity_tensor(Shape<Int<C.tile_m>, Int<C.tile_n>>{});
  const auto part = make_identity_tensor(Shape<Int<C.tile_m / C.store_parts()>, Int<C.out_columns()>>{});
  std::set<std::pair<int, int>> seen;
  for (int thread = 0; thread < C.threads(); ++thread) {
    const auto tCcC = typename Layouts::TiledMma{}.get_slice(thread).partition_C(product);  // ((2,2),MMA_M,MMA_N)
    const auto gate = half_of<C.gating>(tCcC, Half::gate);
    const auto up = half_of<C.gating>(tCcC, Half::up);
    const auto tCcH = typename Layouts::TiledOut{}.get_slice(thread).partition_C(part);
    ASSERT_EQ(size(gate), size(tCcH));
    ASSERT_EQ(size(up), size(tCcH));
    for (int i = 0; i < size(tCcH); ++i) {
      const int row = get<0>(tCcH(i));
      const int column = get<1>(tCcH(i));
      ASSERT_EQ(int{get<0>(gate(i))}, row);
      ASSERT_EQ(int{get<0>(up(i))}, row);
      const TileRow gate_row = tile_row<C.gating>(get<1>(gate(i)));
      const TileRow up_row = tile_row<C.gating>(get<1>(up(i)));
      ASSERT_EQ(gate_row.half, Half::gate);
      ASSERT_EQ(up_row.half, Half::up);
      ASSERT_EQ(gate_row.line, column) << "thread " << thread << " value " << i;
      ASSERT_EQ(up_row.line, column) << "thread " << thread << " value " << i;
      ASSERT_TRUE(seen.emplace(row, column).second) << row << ", " << column;
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(C.tile_m * C.out_columns()));
}

TEST(Sm80, GateAndUpMeetInGroupsOfEight) {
  expect_halves_meet<Large<Op::gate_up, DType::bf16>>();
  expect_halves_meet<Small<Op::gate_up, DType::fp16>>();
  expect_halves_meet<Fp32<Op::gate_up>>();
}

TEST(Sm80, GateAndUpMeetInEvenAndOddColumns) {
  expect_halves_meet<Large<Op::gate_up, DType::bf16, Gating::even_odd>>();
}

// A pair of neighbouring values of an output fragment is stored at once: two columns of a row.
TEST(Sm80, GroupsOfEightLeaveAdjacentPairs) {
  using namespace cute;
  using Layouts = TileLayouts<Large<Op::gate_up, DType::bf16>::config>;
  const auto tile = make_identity_tensor(Shape<_128, _128>{});
  for (int thread = 0; thread < 256; ++thread) {
    const auto tCcH = typename Layouts::TiledOut{}.get_slice(thread).partition_C(tile);
    for (int i = 0; i < size(tCcH); i += 2) {
      ASSERT_EQ(int{get<0>(tCcH(i))}, int{get<0>(tCcH(i + 1))});
      ASSERT_EQ(get<1>(tCcH(i)) % 2, 0);
      ASSERT_EQ(get<1>(tCcH(i)) + 1, get<1>(tCcH(i + 1)));
    }
  }
}

// The part p of gemm's accumulators that is staged at a time is the part p of each warp's rows.
TEST(Sm80, PartsOfTheOutput) {
  using namespace cute;
  constexpr Config C = Large<Op::gemm, DType::bf16>::config;
  using Layouts = TileLayouts<C>;
  constexpr int atoms = Layouts::warp_part / 16;
  const auto product = make_identity_tensor(Shape<Int<C.tile_m>, Int<C.tile_n>>{});
  const auto staging = make_identity_tensor(Shape<Int<C.tile_m / C.store_parts()>, Int<C.tile_n>>{});
  for (int thread = 0; thread < C.threads(); ++thread) {
    const auto tCcC = typename Layouts::TiledMma{}.get_slice(thread).partition_C(product);
    const auto parts = logical_divide(tCcC, Shape<Underscore, Int<atoms>, Underscore>{});
    const auto tCcS = typename Layouts::TiledOut{}.get_slice(thread).partition_C(staging);
    const int warp_m = thread / 32 % C.warps_m;
    for (int part = 0; part < C.store_parts(); ++part) {
      const auto staged = parts(_, make_coord(_, part), _);
      ASSERT_EQ(size(staged), size(tCcS));
      for (int i = 0; i < size(tCcS); ++i) {
        const int in_warp = get<0>(tCcS(i)) - warp_m * Layouts::warp_part;
        ASSERT_EQ(int{get<0>(staged(i))}, warp_m * Layouts::warp_m + part * Layouts::warp_part + in_warp);
        ASSERT_EQ(int{get<1>(staged(i))}, int{get<1>(tCcS(i))});
      }
    }
  }
}

// --- shared memory ---

int chunk_of(int row, int chunk) {  // its place in shared memory, in 16-byte chunks
  using Layouts = TileLayouts<Large<Op::gate_up, DType::bf16>::config>;
  return typename Layouts::SmemB{}(row, chunk * 8) / 8;
}

// Eight lanes that access shared memory together need chunks in eight different groups of four banks.
template <class Place>
void expect_no_conflict(Place place) {
  std::set<int> banks;
  for (int lane = 0; lane < 8; ++lane) banks.insert(place(lane) % 8);
  EXPECT_EQ(banks.size(), 8U);
}

TEST(Sm80, SharedMemoryWithoutBankConflicts) {
  for (int first = 0; first < 256; first += 8) {
    expect_no_conflict([&](int lane) {  // cp.async
      const LoaderLane at(first + lane);
      return chunk_of(at.row, at.chunk);
    });
  }
  for (int first = 0; first < 32; first += 8) {
    for (int block = 0; block < 4; ++block) {
      expect_no_conflict([&](int lane) {  // ldmatrix
        const FragmentLane at(first + lane);
        return chunk_of(at.a_row, at.a_chunk + 2 * block);
      });
      expect_no_conflict([&](int lane) {
        const FragmentLane at(first + lane);
        return chunk_of(at.b_row, at.b_chunk + 2 * block);
      });
    }
  }
}

TEST(Sm80, EveryChunkIsCopiedOnce) {
  std::set<int> seen;
  for (int thread = 0; thread < 256; ++thread) {
    const LoaderLane at(thread);
    EXPECT_TRUE(seen.insert(chunk_of(at.row, at.chunk)).second);
    EXPECT_TRUE(seen.insert(chunk_of(at.row, at.chunk + 4)).second);
    EXPECT_EQ(chunk_of(at.row, at.chunk + 4), chunk_of(at.row, at.chunk) ^ 4) << "the far chunk is one xor away";
  }
  EXPECT_EQ(seen.size(), 64U * 8U);
}

TEST(Sm80, KBlocksAreOneXorApart) {
  for (int row = 0; row < 256; ++row) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      for (int block = 0; block < 4; ++block) {
        EXPECT_EQ(chunk_of(row, chunk + 2 * block), chunk_of(row, chunk) ^ (2 * block));
      }
    }
  }
}

TEST(Sm80, SharedMemoryFitsTheChips) {
  constexpr int a100 = 163 * 1024;
  constexpr int ada = 99 * 1024;
  constexpr int hopper = 227 * 1024;
  for (const Op op : {Op::gate_up, Op::gemm, Op::gemm_gated}) {
    const auto bytes = [&](auto build) { return decltype(build)::config.shared_bytes(); };
    const int large = op == Op::gate_up ? bytes(Large<Op::gate_up, DType::bf16>{})
                      : op == Op::gemm  ? bytes(Large<Op::gemm, DType::bf16>{})
                                        : bytes(Large<Op::gemm_gated, DType::bf16>{});
    const int small = op == Op::gate_up ? bytes(Small<Op::gate_up, DType::bf16>{})
                      : op == Op::gemm  ? bytes(Small<Op::gemm, DType::bf16>{})
                                        : bytes(Small<Op::gemm_gated, DType::bf16>{});
    const int fp32 = op == Op::gate_up ? bytes(Fp32<Op::gate_up>{})
                     : op == Op::gemm  ? bytes(Fp32<Op::gemm>{})
                                       : bytes(Fp32<Op::gemm_gated>{});
    EXPECT_LE(large, hopper);
    EXPECT_GT(large, a100) << "then it should be compiled for 8.0";
    EXPECT_LE(small, ada);
    EXPECT_LE(fp32, ada);
    if (op != Op::gemm_gated) EXPECT_LE(2 * (small + 1024), a100 + 1024) << "two blocks of an A100";
  }
}

// --- weight rows ---

TEST(Sm80, DivisionByMultiplication) {
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

TEST(Sm80, WeightRowsFollowTheLayout) {
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

// --- which tile, which kernel ---

TEST(Sm80, RasterTakesEveryTileOnce) {
  for (const std::int32_t tiles_m : {1, 2, 11, 12, 13, 25, 100}) {
    for (const std::int32_t tiles_n : {1, 3, 56}) {
      std::set<std::pair<int, int>> seen;
      for (std::int32_t i = 0; i < tiles_m * tiles_n; ++i) {
        const TileCoord tile = tile_coord(i, tiles_m, tiles_n, raster_group(tiles_m));
        EXPECT_TRUE(0 <= tile.m && tile.m < tiles_m && 0 <= tile.n && tile.n < tiles_n);
        EXPECT_TRUE(seen.emplace(tile.m, tile.n).second) << tile.m << ", " << tile.n;
      }
    }
  }
}

TEST(Sm80, RasterGroupsAreAlike) {
  for (std::int64_t tiles_m = 1; tiles_m < 1000; ++tiles_m) {
    const std::int64_t group = raster_group(tiles_m);
    EXPECT_LE(group, 12);
    const std::int64_t groups = (tiles_m + group - 1) / group;
    EXPECT_EQ(groups, (tiles_m + 11) / 12) << tiles_m << ": no more sweeps than it takes";
  }
}

class Choice : public testing::Test {
 protected:
  static constexpr Machine h200{132, 227 * 1024};
  static constexpr Machine a100{108, 163 * 1024};
  const std::vector<Kernel> kernels_{{Large<Op::gate_up, DType::bf16>::config, 436.0, nullptr},
                                     {Small<Op::gate_up, DType::bf16>::config, 353.0, nullptr}};

  static Problem problem(std::int64_t D, std::int64_t F) {
    Problem p;
    p.op = Op::gate_up;
    p.dtype = DType::bf16;
    p.hidden_size = D;
    p.intermediate_size = F;
    return p;
  }
  const Config& chosen(std::int64_t D, std::int64_t F, std::int64_t T, const Machine& machine) const {
    return choose(kernels_, problem(D, F), T, machine)->config;
  }
};

TEST_F(Choice, LargeTilesWhereThereIsEnoughToDo) {
  for (const std::int64_t T : {2048, 8192, 65536}) {
    EXPECT_EQ(chosen(4096, 14336, T, h200).tile_n, 256) << T;
    EXPECT_EQ(chosen(8192, 28672, T, h200).tile_n, 256) << T;
  }
}

TEST_F(Choice, SmallTilesWhereLargeOnesAreTooFew) { EXPECT_EQ(chosen(576, 1536, 128, h200).tile_n, 128); }

TEST_F(Choice, OnlyWhatFitsTheMachine) {
  for (const std::int64_t T : {1, 512, 65536}) EXPECT_EQ(chosen(4096, 14336, T, a100).tile_n, 128) << T;
  EXPECT_EQ(choose(kernels_, problem(64, 64), 1, {20, 48 * 1024}), nullptr);
}

// 132 tiles take one round, the 133rd another one.
TEST_F(Choice, EstimatesCountRounds) {
  const Kernel& large = kernels_.front();
  const auto seconds = [&](std::int64_t F) { return estimated_seconds(large, problem(1024, F), 128, h200); };
  EXPECT_DOUBLE_EQ(seconds(128 * 132), seconds(128));
  EXPECT_DOUBLE_EQ(seconds(128 * 132 + 1), 2 * seconds(128));
  EXPECT_DOUBLE_EQ(estimated_seconds(large, problem(2048, 128), 128, h200), 2 * seconds(128));
}

}  // namespace
}  // namespace gatefold::cuda::sm80
