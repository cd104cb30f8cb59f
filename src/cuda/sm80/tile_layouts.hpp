#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/arch/mma_sm80.hpp>
#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <type_traits>

#include "cuda/sm80/config.hpp"
#include "cuda/sm80/gating.hpp"

// The layouts that a Config stands for: shared memory, the division of a tile among the threads, and the copies from
// shared memory to registers. Runs on the host too.
namespace gatefold::sm80 {

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

// Rows of Columns elements, of which 16-byte chunks are exchanged within each row so that eight rows' chunks of one
// column fall into the 32 banks without conflict: what ldmatrix reads, and what the epilogue writes.
template <int RowBytes, int Size>
constexpr auto swizzled_rows() {
  static_assert(RowBytes == 64 || RowBytes % 128 == 0);
  constexpr int chunk = 16 / Size;  // elements
  constexpr int chunk_bits = Size == 2 ? 3 : 2;
  constexpr int bits = RowBytes == 64 ? 2 : 3;  // 64 bytes: two rows to a line of 32 banks
  constexpr int columns = chunk << bits;
  return cute::composition(
      cute::Swizzle<bits, chunk_bits, 3>{},
      cute::Layout<cute::Shape<cute::_8, cute::Int<columns>>, cute::Stride<cute::Int<columns>, cute::_1>>{});
}

template <Config C>
struct TileLayouts {
  using Element = typename Mma<C.dtype>::Element;
  using MmaAtom = typename Mma<C.dtype>::Atom;

  static constexpr int mma_k = 32 / static_cast<int>(sizeof(Element));
  static constexpr int k_blocks = C.tile_k / mma_k;
  static constexpr int warp_m = C.tile_m / C.warps_m;
  static constexpr int warp_n = C.tile_n / C.warps_n;
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0 && k_blocks >= 2);

  using SwizzledTile = decltype(swizzled_rows<C.tile_k* int{sizeof(Element)}, int{sizeof(Element)}>());
  using SmemA = decltype(cute::tile_to_shape(
      SwizzledTile{}, cute::Shape<cute::Int<C.tile_m>, cute::Int<C.tile_k>, cute::Int<C.stages>>{}));
  using SmemB = decltype(cute::tile_to_shape(
      SwizzledTile{}, cute::Shape<cute::Int<C.tile_n>, cute::Int<C.tile_k>, cute::Int<C.stages>>{}));
  // The staging tile of the output, in blocks of 128 bytes a row.
  using SmemOut = decltype(cute::tile_to_shape(swizzled_rows<128, int{sizeof(Element)}>(),
                                               cute::Shape<cute::Int<C.tile_m>, cute::Int<C.out_columns()>>{}));

  // Every warp owns one contiguous block of warp_m x warp_n: ldmatrix reads 16 rows at a time, neighbouring fragments
  // are neighbouring columns, and the epilogue of a warp touches no other warp's part of the staging tile.
  template <int Atom, int Warps, int Extent>
  using Contiguous = cute::Layout<cute::Shape<cute::Int<Atom>, cute::Int<Warps>, cute::Int<Extent / Atom>>,
                                  cute::Stride<cute::_1, cute::Int<Extent>, cute::Int<Atom>>>;
  template <class AtomType, int N, int WarpN>
  using Tiled =
      cute::TiledMMA<cute::MMA_Atom<AtomType>,
                     cute::Layout<cute::Shape<cute::Int<C.warps_m>, cute::Int<C.warps_n>, cute::_1>>,
                     cute::Tile<Contiguous<16, C.warps_m, warp_m>, Contiguous<N, C.warps_n, WarpN>, cute::Int<mma_k>>>;

  using TiledMma = Tiled<MmaAtom, 8, warp_n>;

  // What partitions the output: the gated atom where two columns of the product become one.
  using OutAtom = std::conditional_t<C.gated_pair(), GatedAtom<C.gating>, MmaAtom>;
  static constexpr int out_atom_n = C.gating == Gating::even_odd ? 4 : 8;
  static constexpr int warp_out = C.out_columns() / C.warps_n;
  using TiledOut = Tiled<OutAtom, out_atom_n, warp_out>;

  using LoadMatrix = cute::Copy_Atom<cute::SM75_U32x4_LDSM_N, Element>;
};

}  // namespace gatefold::sm80
