#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "cuda/sm80/shapes.hpp"
#include "cuda/sm80/tile_layouts.hpp"

// The layouts that the sm_80 kernels are built from, where no GPU is needed: CuTe's algebra runs on the host.
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
  expect_halves_meet<Tall<Op::gate_up, DType::bf16>>();
  expect_halves_meet<Large<Op::gate_up, DType::bf16>>();
  expect_halves_meet<Small<Op::gate_up, DType::fp16>>();
  expect_halves_meet<Fp32<Op::gate_up>>();
}

TEST(Sm80, GateAndUpMeetInEvenAndOddColumns) { expect_halves_meet<LargeAnyOrder<DType::bf16, Gating::even_odd>>(); }

// A pair of neighbouring values of an output fragment is stored at once: two columns of a row.
template <class Build>
void expect_adjacent_pairs() {
  using namespace cute;
  constexpr Config C = Build::config;
  using Layouts = TileLayouts<C>;
  const auto tile = make_identity_tensor(Shape<Int<C.tile_m>, Int<C.out_columns()>>{});
  for (int thread = 0; thread < 256; ++thread) {
    const auto tCcH = typename Layouts::TiledOut{}.get_slice(thread).partition_C(tile);
    for (int i = 0; i < size(tCcH); i += 2) {
      ASSERT_EQ(int{get<0>(tCcH(i))}, int{get<0>(tCcH(i + 1))});
      ASSERT_EQ(get<1>(tCcH(i)) % 2, 0);
      ASSERT_EQ(get<1>(tCcH(i)) + 1, get<1>(tCcH(i + 1)));
    }
  }
}

TEST(Sm80, GroupsOfEightLeaveAdjacentPairs) {
  expect_adjacent_pairs<Tall<Op::gate_up, DType::bf16>>();
  expect_adjacent_pairs<Large<Op::gate_up, DType::bf16>>();
}

// The part p of gemm's accumulators that is staged at a time is the part p of each warp's rows.
template <class Build>
void expect_parts() {
  using namespace cute;
  constexpr Config C = Build::config;
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

TEST(Sm80, PartsOfTheOutput) {
  expect_parts<Tall<Op::gemm, DType::bf16>>();
  expect_parts<Large<Op::gemm, DType::bf16>>();
  expect_parts<Small<Op::gemm, DType::fp16>>();
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
    expect_no_conflict([&](int lane) {  // cp.async of TileLoader
      const LoaderLane at(first + lane);
      return chunk_of(at.row, at.chunk);
    });
    expect_no_conflict([&](int lane) {  // and of LineLoader
      const LineLane at(first + lane);
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

// The epilogue stages and stores one chunk each of eight rows at a time.
template <class Build>
void expect_staging_without_conflicts() {
  constexpr Config C = Build::config;
  constexpr int chunk = 16 / C.element_size();
  const auto staging = typename TileLayouts<C>::SmemOut{};
  for (int row = 0; row < C.tile_m / C.store_parts(); row += 8) {
    for (int column = 0; column < C.out_columns(); column += chunk) {
      expect_no_conflict([&](int lane) { return staging(row + lane, column) / chunk; });
    }
  }
}

TEST(Sm80, StagingWithoutBankConflicts) {
  expect_staging_without_conflicts<Tall<Op::gate_up, DType::bf16>>();
  expect_staging_without_conflicts<Tall<Op::gemm, DType::bf16>>();
  expect_staging_without_conflicts<Large<Op::gate_up, DType::bf16>>();
  expect_staging_without_conflicts<Small<Op::gemm, DType::fp16>>();
  expect_staging_without_conflicts<Fp32<Op::gate_up>>();
}

TEST(Sm80, EveryChunkIsCopiedOnce) {
  std::set<int> halves;
  std::set<int> lines;
  for (int thread = 0; thread < 256; ++thread) {
    const LoaderLane at(thread);
    EXPECT_TRUE(halves.insert(chunk_of(at.row, at.chunk)).second);
    EXPECT_TRUE(halves.insert(chunk_of(at.row, at.chunk + 4)).second);
    EXPECT_EQ(chunk_of(at.row, at.chunk + 4), chunk_of(at.row, at.chunk) ^ 4) << "the far chunk is one xor away";
    const LineLane line(thread);
    EXPECT_TRUE(lines.insert(chunk_of(line.row, line.chunk)).second);
  }
  EXPECT_EQ(halves.size(), 64U * 8U);
  EXPECT_EQ(lines.size(), 32U * 8U);
}

// LineLoader adds a constant to an address in shared memory for each pass, and to the line in the half.
template <class Build>
void expect_passes() {
  constexpr Config C = Build::config;
  const auto rows = typename TileLayouts<C>::SmemB{};
  for (int thread = 0; thread < C.threads(); ++thread) {
    const LineLane lane(thread);
    const TileRow first = tile_row<C.gating>(lane.row);
    for (int pass = 0; pass * C.rows_per_pass() < C.tile_n; ++pass) {
      const int row = lane.row + pass * C.rows_per_pass();
      const TileRow here = tile_row<C.gating>(row);
      ASSERT_EQ(here.half, first.half) << "row " << row;
      ASSERT_EQ(here.line, first.line + pass * C.lines_per_pass()) << "row " << row;
      ASSERT_EQ(rows(row, lane.chunk * 8), rows(lane.row, lane.chunk * 8) + pass * C.rows_per_pass() * C.tile_k);
    }
  }
}

TEST(Sm80, PassesOfTheLineLoader) {
  expect_passes<Large<Op::gate_up, DType::bf16>>();
  expect_passes<Large<Op::gemm_gated, DType::fp16>>();
}

// What ldmatrix reads of boxes, gate's rows above up's: for each lane and each two products, the row that groups of
// eight would have there; and the swizzle is what the copy engine writes, chunks exchanged by the row's number in its
// eight.
template <class Build>
void expect_boxes() {
  constexpr Config C = Build::config;
  using Layouts = TileLayouts<C>;
  const auto rows = typename Layouts::SmemB{};
  for (int warp = 0; warp < C.warps_n; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      const FragmentLane at(lane);
      const int first = smem_row<C>(warp * Layouts::warp_n + at.b_row);
      for (int pair = 0; pair < Layouts::warp_n / 16; ++pair) {
        const int n = warp * Layouts::warp_n + pair * 16 + at.b_row;
        const int there = first + pair * fragment_step<C>;
        ASSERT_EQ(there, smem_row<C>(n)) << "lane " << lane << ", pair " << pair;
        if (C.gated_pair()) {
          const TileRow row = tile_row<C.gating>(n);
          ASSERT_EQ(there / (C.tile_n / 2), row.half == Half::gate ? 0 : 1);
          ASSERT_EQ(there % (C.tile_n / 2), row.line);
        }
        for (int chunk = 0; chunk < 8; ++chunk) {
          ASSERT_EQ(rows(there, chunk * 8), there * C.tile_k + (chunk ^ (there % 8)) * 8);
        }
      }
    }
  }
}

TEST(Sm80, FragmentsOfBoxes) {
  expect_boxes<Tall<Op::gate_up, DType::bf16>>();
  expect_boxes<Tall<Op::gemm, DType::bf16>>();
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

template <Op op, DType dtype>
void expect_to_fit() {
  constexpr int a100 = 163 * 1024;
  constexpr int ada = 99 * 1024;
  constexpr int hopper = 227 * 1024;
  const auto expect_hopper_only = [&](const Config& config) {
    EXPECT_LE(config.shared_bytes(), hopper);
    EXPECT_GT(config.shared_bytes(), a100) << "then it should be compiled for 8.0";
  };
  expect_hopper_only(Large<op, dtype>::config);
  if (op == Op::gate_up) expect_hopper_only(LargeAnyOrder<dtype>::config);
  if (op != Op::gemm_gated) expect_hopper_only(Tall<op, dtype>::config);
  constexpr int small = Small<op, dtype>::config.shared_bytes();
  EXPECT_LE(small, ada);
  if (op != Op::gemm_gated) EXPECT_LE(2 * (small + 1024), a100 + 1024) << "two blocks of an A100";
  EXPECT_LE(Fp32<op>::config.shared_bytes(), ada);
}

TEST(Sm80, SharedMemoryFitsTheChips) {
  expect_to_fit<Op::gate_up, DType::bf16>();
  expect_to_fit<Op::gemm, DType::bf16>();
  expect_to_fit<Op::gemm_gated, DType::bf16>();
}

}  // namespace
}  // namespace gatefold::cuda::sm80
