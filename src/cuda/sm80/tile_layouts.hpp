#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/arch/mma_sm80.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <type_traits>

#include "cuda/sm80/config.hpp"
#include "cuda/sm80/gating.hpp"

// The layouts that a Config stands for: shared memory, and the division of a tile among the threads. Runs on the host
// too.
namespace gatefold::cuda::sm80 {

template <DType D>
struct Mma;
template <>
struct Mma<DType::bf16> {
  using Element = cute::bfloat16_t;
  using Atom = cute::SM80_16x8x16_F32BF16BF16F32_TN;
};
template <>
struct Mma<DType::fp16> {
  using Element = cute::half_t;
  using Atom = cute::SM80_16x8x16_F32F16F16F32_TN;
};
template <>
struct Mma<DType::fp32> {
  using Element = float;
  using Atom = cute::SM80_16x8x8_F32TF32TF32F32_TN;
};

inline constexpr int row_bytes = 128;  // of a k-tile

// Rows of 128 bytes (or 64 or 32), of which 16-byte chunks are exchanged within each row so that eight rows' chunks of
// one column fall into the 32 banks without conflict: what ldmatrix reads, and what the epilogue writes.
template <int Size, int Bytes = row_bytes>
constexpr auto swizzled_rows() {
  constexpr int columns = Bytes / Size;
  constexpr int bits = Bytes == 128 ? 3 : (Bytes == 64 ? 2 : 1);  // of a chunk's number in its row
  return cute::composition(
      cute::Swizzle < bits, Size == 2 ? 3 : 2, 3 > {},
      cute::Layout<cute::Shape<cute::_8, cute::Int<columns>>, cute::Stride<cute::Int<columns>, cute::_1>>{});
}

// Which row and which 16-byte chunk (and the one 64 bytes on) a thread copies to shared memory. Four lanes take the
// halves of a row. Rows 4 apart go to different halves of the banks, so each eight lanes take rows r and r + 4.
struct LoaderLane {
  int row, chunk;
  CUTE_HOST_DEVICE constexpr explicit LoaderLane(int thread)
      : row(thread / 32 * 8 + thread / 4 % 2 * 4 + thread % 32 / 8), chunk(thread % 4) {}
};

// The same of LineLoader: eight lanes take the chunks of a row.
struct LineLane {
  int row, chunk;
  CUTE_HOST_DEVICE constexpr explicit LineLane(int thread) : row(thread / 8), chunk(thread % 8) {}
};

// Which row and chunk of a 16-row, 32-byte block a lane names to ldmatrix, so that its four matrices are the registers
// of an m16 operand, or of two n8 operands one after the other.
struct FragmentLane {
  int a_row, a_chunk, b_row, b_chunk;
  CUTE_HOST_DEVICE constexpr explicit FragmentLane(int lane)
      : a_row(lane % 16), a_chunk(lane / 16), b_row(lane / 16 * 8 + lane % 8), b_chunk(lane / 8 % 2) {}
};

// Where weight row n of a tile, in the order of gating.hpp, lies in shared memory: there too, or where halves come as
// boxes, gate's rows above up's.
template <Config C>
CUTE_HOST_DEVICE constexpr int smem_row(int n) {
  if (C.copies != Copies::boxes || !C.gated_pair()) return n;
  const TileRow row = tile_row<C.gating>(n);
  return (row.half == Half::gate ? 0 : C.tile_n / 2) + row.line;
}

// Rows from the weights of two products to those of the next two, which are 16 on in gating's order.
template <Config C>
inline constexpr int fragment_step = C.copies == Copies::boxes && C.gated_pair() ? 8 : 16;

template <Config C>
struct TileLayouts {
  using Element = typename Mma<C.dtype>::Element;
  using MmaAtom = typename Mma<C.dtype>::Atom;

  static constexpr int mma_k = 32 / static_cast<int>(sizeof(Element));
  static constexpr int k_blocks = C.tile_k / mma_k;
  static constexpr int warp_m = C.tile_m / C.warps_m;
  static constexpr int warp_n = C.tile_n / C.warps_n;
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0);
  static_assert(C.tile_k * int{sizeof(Element)} == row_bytes);

  // One stage.
  using Rows = decltype(swizzled_rows<int{sizeof(Element)}>());
  using SmemA = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<C.tile_m>, cute::Int<C.tile_k>>{}));
  using SmemB = decltype(cute::tile_to_shape(Rows{}, cute::Shape<cute::Int<C.tile_n>, cute::Int<C.tile_k>>{}));
  // The staging tile, in blocks of 128 bytes a row; or fewer, where a block must end with a warp's part: 48 columns are
  // three blocks of 32 bytes.
  static constexpr int warp_out = C.out_columns() / C.warps_n;
  static constexpr int out_row_bytes(int bytes = row_bytes) {
    const int warp_bytes = warp_out * int{sizeof(Element)};
    return warp_bytes % bytes == 0 || bytes % warp_bytes == 0 ? bytes : out_row_bytes(bytes / 2);
  }
  using SmemOut =
      decltype(cute::tile_to_shape(swizzled_rows<int{sizeof(Element)}, out_row_bytes()>(),
                                   cute::Shape<cute::Int<C.tile_m / C.store_parts()>, cute::Int<C.out_columns()>>{}));

  // Every warp owns one contiguous block of warp_m x warp_n: ldmatrix reads 16 rows at a time, neighbouring fragments
  // are neighbouring columns, and the epilogue of a warp touches no other warp's part of the staging tile.
  template <int Atom, int Warps, int Extent>
  using Contiguous = cute::Layout<cute::Shape<cute::Int<Atom>, cute::Int<Warps>, cute::Int<Extent / Atom>>,
                                  cute::Stride<cute::_1, cute::Int<Extent>, cute::Int<Atom>>>;
  template <class AtomType, int N, int WarpM, int WarpN>
  using Tiled =
      cute::TiledMMA<cute::MMA_Atom<AtomType>,
                     cute::Layout<cute::Shape<cute::Int<C.warps_m>, cute::Int<C.warps_n>, cute::_1>>,
                     cute::Tile<Contiguous<16, C.warps_m, WarpM>, Contiguous<N, C.warps_n, WarpN>, cute::Int<mma_k>>>;

  using TiledMma = Tiled<MmaAtom, 8, warp_m, warp_n>;

  // What divides the staging tile among the threads: as the product's accumulators lie, or where two of its
  // neighbouring columns become one, as their results do.
  using OutAtom = std::conditional_t<C.gating == Gating::even_odd, EvenOddOutputs<MmaAtom>, MmaAtom>;
  static constexpr int out_atom_n = C.gating == Gating::even_odd ? 4 : 8;
  static constexpr int warp_part = warp_m / C.store_parts();  // rows
  using TiledOut = Tiled<OutAtom, out_atom_n, warp_part, warp_out>;
};

}  // namespace gatefold::cuda::sm80
