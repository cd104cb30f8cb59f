#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/arch/copy_sm80.hpp>

#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/tile_layouts.hpp"
#include "cuda/sm80/tile_loader.cuh"

namespace gatefold::cuda::sm80 {

// Multiplies the k-tiles of one output tile as they arrive. While the products of one k-block (16 columns; 8 for fp32)
// run, the fragments of the next are read, and a share of a k-tile C.stages - 1 ahead is requested.
//
// What limits this loop is the instructions around the products: two warps share a scheduler and a tensor core, which
// takes an mma.sync every six cycles. So addresses are a base and constants: a stage's offset is the same for all
// threads, and swizzling makes k-block b's fragments lie at the first one's address with 32 b flipped.
template <Config C>
class Mainloop {
  using Layouts = TileLayouts<C>;
  using Loader = TileLoader<C>;
  static constexpr int k_blocks = Layouts::k_blocks;
  static constexpr int k_block_bytes = 32;
  static constexpr int atoms_m = Layouts::warp_m / 16;
  static constexpr int atoms_n = Layouts::warp_n / 8;
  static constexpr bool fp32 = C.dtype == DType::fp32;
  static constexpr int products = atoms_m * atoms_n * (fp32 ? 3 : 1);  // of a k-block
  static constexpr int reads = atoms_m + atoms_n / 2;
  static constexpr int copies = (Loader::copies + k_blocks - 2) / (k_blocks - 1);  // in each k-block but the last
  static_assert(2 * (reads + copies) <= products, "a read or a copy after every second product");
  static_assert(k_blocks % 2 == 0, "the two sets of fragments take turns");

  // One k-block's operands in registers, as the atom takes them.
  struct Fragments {
    std::uint32_t a[atoms_m][4];
    std::uint32_t b[atoms_n][2];
  };

 public:
  __device__ Mainloop(const Params& params, std::uint32_t shared) : loader_(params, shared), k_tiles_(params.k_tiles) {
    const FragmentLane lane(static_cast<int>(threadIdx.x) % 32);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    constexpr int chunk = 16 / C.element_size();
    a_ = shared + typename Layouts::SmemA{}(warp % C.warps_m * Layouts::warp_m + lane.a_row, lane.a_chunk * chunk) *
                      C.element_size();
    b_ = shared + C.tile_m * row_bytes +
         typename Layouts::SmemB{}(warp / C.warps_m * Layouts::warp_n + lane.b_row, lane.b_chunk * chunk) *
             C.element_size();
#pragma unroll 1
    for (int stage = 0; stage + 1 < C.stages; ++stage) {
#pragma unroll
      for (int i = 0; i < Loader::copies; ++i) loader_.copy(i, stage * C.stage_bytes());
      cute::cp_async_fence();
      loader_.advance();
      if (loader_.left() == 0) loader_.next_tile();
    }
    wait_for_stage();
  }

  template <class Accumulators>
  CUTE_DEVICE void run(Accumulators& tCrC) {  // ((2,2),MMA_M,MMA_N)
    Fragments fragments[2];
#pragma unroll
    for (int i = 0; i < reads; ++i) read(i, a_ + offset_, b_ + offset_, fragments[0]);
    int left = k_tiles_;
#pragma unroll 1
    do {
      int steps = min(left, loader_.left());
      left -= steps;
#pragma unroll 1
      for (; steps > 0; --steps) k_tile(fragments, tCrC);
      if (loader_.left() == 0) loader_.next_tile();
    } while (left > 0);
  }

  // All copies requested before this tile's first k-tile have landed: this thread's own.
  __device__ void wait_for_older_copies() const {
    if (k_tiles_ < C.stages - 1) cute::cp_async_wait<0>();
  }

 private:
  // The oldest k-tile has landed for every thread, and every thread has read all of the one before it.
  __device__ __forceinline__ static void wait_for_stage() {
    cute::cp_async_wait<C.stages - 2>();
    __syncthreads();
  }

  // The products of one k-tile, whose first fragments have been read; ends with those of the next.
  template <class Accumulators>
  CUTE_DEVICE void k_tile(Fragments (&fragments)[2], Accumulators& tCrC) {
    const std::uint32_t free_stage = offset_ == 0 ? (C.stages - 1) * C.stage_bytes() : offset_ - C.stage_bytes();
    cute::for_each(cute::make_int_sequence<k_blocks>{}, [&](auto block) {
      constexpr int next = (block + 1) % k_blocks;
      if constexpr (next == 0) {
        cute::cp_async_fence();
        loader_.advance();
        wait_for_stage();
        offset_ = offset_ == (C.stages - 1) * C.stage_bytes() ? 0 : offset_ + C.stage_bytes();
      }
      const std::uint32_t a = (a_ ^ (next * k_block_bytes)) + offset_;
      const std::uint32_t b = (b_ ^ (next * k_block_bytes)) + offset_;
      multiply(fragments[block % 2], tCrC, [&](int product) {
        if (product % 2 != 0) return;
        const int slot = product / 2;
        if (slot < reads) {
          read(slot, a, b, fragments[next % 2]);
        } else if (next != 0 && slot - reads < copies) {
          const int i = block * copies + slot - reads;
          if (i < Loader::copies) loader_.copy(i, free_stage);
        }
      });
    });
  }

  // Fragment number i: the first of both operands first, they are wanted first.
  CUTE_DEVICE static void read(int i, std::uint32_t a, std::uint32_t b, Fragments& to) {
    constexpr int step = 16 * row_bytes;
    if (i == 0 || i > atoms_n / 2) {
      const int m = i == 0 ? 0 : i - atoms_n / 2;
      load_matrices(a + m * step, to.a[m][0], to.a[m][1], to.a[m][2], to.a[m][3]);
    } else {
      const int n = 2 * (i - 1);
      load_matrices(b + (i - 1) * step, to.b[n][0], to.b[n][1], to.b[n + 1][0], to.b[n + 1][1]);
    }
  }

  // after(i) follows product number i.
  template <class Accumulators, class After>
  CUTE_DEVICE static void multiply(const Fragments& f, Accumulators& tCrC, After after) {
    if constexpr (fp32) {
      Fragments big, small;
      split(f, big, small);
      constexpr int pass = products / 3;
      multiply(small, big, tCrC, [&](int i) { after(i); });
      multiply(big, small, tCrC, [&](int i) { after(pass + i); });
      multiply(big, big, tCrC, [&](int i) { after(2 * pass + i); });
    } else {
      multiply(f, f, tCrC, after);
    }
  }

  template <class Accumulators, class After>
  CUTE_DEVICE static void multiply(const Fragments& a, const Fragments& b, Accumulators& tCrC, After after) {
#pragma unroll
    for (int m = 0; m < atoms_m; ++m) {
#pragma unroll
      for (int i = 0; i < atoms_n; ++i) {
        const int n = m % 2 == 0 ? i : atoms_n - 1 - i;  // there and back: the neighbour's operand is used again
        auto c = tCrC(cute::_, m, n);
        Layouts::MmaAtom::fma(c(0), c(1), c(2), c(3), a.a[m][0], a.a[m][1], a.a[m][2], a.a[m][3], b.b[n][0], b.b[n][1],
                              c(0), c(1), c(2), c(3));
        after(m * atoms_n + i);
      }
    }
  }

  CUTE_DEVICE static void split(const Fragments& f, Fragments& big, Fragments& small) {
#pragma unroll
    for (int i = 0; i < atoms_m * 4; ++i) {
      const SplitFloat s = split_for_tf32(f.a[i / 4][i % 4]);
      big.a[i / 4][i % 4] = s.big;
      small.a[i / 4][i % 4] = s.small;
    }
#pragma unroll
    for (int i = 0; i < atoms_n * 2; ++i) {
      const SplitFloat s = split_for_tf32(f.b[i / 2][i % 2]);
      big.b[i / 2][i % 2] = s.big;
      small.b[i / 2][i % 2] = s.small;
    }
  }

  Loader loader_;
  int k_tiles_;
  std::uint32_t a_;  // this thread's first address of stage 0
  std::uint32_t b_;
  std::uint32_t offset_ = 0;  // of the stage that is multiplied
};

}  // namespace gatefold::cuda::sm80
