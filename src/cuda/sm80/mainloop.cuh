#pragma once

#include "cuda/sm80/fragments.cuh"
#include "cuda/sm80/ptx.cuh"

namespace gatefold::cuda::sm80 {

// Multiplies the k-tiles of one output tile as they arrive. While the products of one k-block (16 columns; 8 for fp32)
// run, the fragments of the next are read, and some of a k-tile C.stages - 1 ahead is requested.
//
// What limits this loop is the instructions around the products: two warps share a scheduler and a tensor core, which
// takes an mma.sync every six cycles. So addresses are a base and constants (stages.cuh).
template <Config C, class Loads>
class Mainloop {
  using Layouts = TileLayouts<C>;
  using Addresses = FragmentAddresses<C>;
  static constexpr int k_blocks = Layouts::k_blocks;
  static constexpr int atoms_m = Layouts::warp_m / 16;
  static constexpr int atoms_n = Layouts::warp_n / 8;
  static constexpr bool fp32 = C.dtype == DType::fp32;
  static constexpr int products = atoms_m * atoms_n * (fp32 ? 3 : 1);  // of a k-block
  static constexpr int reads = atoms_m + atoms_n / 2;
  static constexpr int copies = (Loads::copies + k_blocks - 2) / (k_blocks - 1);  // in each k-block but the last
  static_assert(2 * (reads + copies) <= products, "a read or a copy after every second product");
  static_assert(k_blocks % 2 == 0, "the two sets of fragments take turns");

  // One k-block's operands in registers, as the atom takes them.
  struct Fragments {
    std::uint32_t a[atoms_m][4];
    std::uint32_t b[atoms_n][2];
  };

 public:
  __device__ Mainloop(const typename Loads::Arguments& params, std::uint32_t shared)
      : stages_(params, shared), first_(shared) {}

  template <class Accumulators>
  CUTE_DEVICE void run(int /*thirds*/, Accumulators& tCrC) {  // ((2,2),MMA_M,MMA_N)
    static_assert(!C.narrows(), "all tiles are whole");
    Fragments fragments[2];
    const std::uint32_t stage = stages_.current();
#pragma unroll
    for (int i = 0; i < reads; ++i) read(i, first_.a + stage, first_.b + stage, fragments[0]);
    stages_.for_each_k_tile([&] { k_tile(fragments, tCrC); });
  }

  __device__ void wait_for_older_copies() const { stages_.wait_for_older_copies(); }
  __device__ static void end() { cute::cp_async_wait<0>(); }

 private:
  // The products of one k-tile, whose first fragments have been read; ends with those of the next.
  template <class Accumulators>
  CUTE_DEVICE void k_tile(Fragments (&fragments)[2], Accumulators& tCrC) {
    const std::uint32_t free_stage = stages_.free();
    cute::for_each(cute::make_int_sequence<k_blocks>{}, [&](auto block) {
      constexpr int next = (block + 1) % k_blocks;
      if constexpr (next == 0) stages_.advance();
      const std::uint32_t a = (first_.a ^ (next * Addresses::k_block_bytes)) + stages_.current();
      const std::uint32_t b = (first_.b ^ (next * Addresses::k_block_bytes)) + stages_.current();
      multiply(fragments[block % 2], tCrC, [&](int product) {
        if (product % 2 != 0) return;
        const int slot = product / 2;
        if (slot < reads) {
          read(slot, a, b, fragments[next % 2]);
        } else if (next != 0 && slot - reads < copies) {
          const int i = block * copies + slot - reads;
          if (i < Loads::copies) stages_.copy(i, free_stage);
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

  Loads stages_;
  Addresses first_;  // of k-block 0
};

}  // namespace gatefold::cuda::sm80
