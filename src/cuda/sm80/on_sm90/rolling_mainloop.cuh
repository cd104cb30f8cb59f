#pragma once

#include "cuda/sm80/fragments.cuh"
#include "cuda/sm80/ptx.cuh"

namespace gatefold::cuda::sm80 {

// Multiplies as Mainloop does, with half of its fragments in registers, which a warp tile of 64x96 needs: 192
// accumulators and two sets of 16 + 24 registers would be 272. There is one set of weights, into which the next
// k-block's are read as the last row of products goes by, each two in place of two that are done with; and of x two
// rows, this one's and the next one's. Each read has the products of a row to land in, 12 of them.
template <Config C, class Loads>
class RollingMainloop {
  using Layouts = TileLayouts<C>;
  using Addresses = FragmentAddresses<C>;
  static constexpr int k_blocks = Layouts::k_blocks;
  static constexpr int atoms_m = Layouts::warp_m / 16;
  static constexpr int atoms_n = Layouts::warp_n / 8;
  static_assert(C.dtype != DType::fp32 && C.copies == Copies::boxes);
  static_assert(k_blocks % 2 == 0, "a k-tile ends as it begins: with the same rows, there or back");
  static_assert(atoms_m % 2 == 0, "the next k-tile's first row of x is read beside this one's last");
  static_assert(atoms_n % 6 == 0, "weights are read by twos, of a third of a tile too");

  // Operands in registers, as the atom takes them.
  template <int columns>
  struct Fragments {
    std::uint32_t a[2][4];  // rows of x: even and odd ones
    std::uint32_t b[columns][2];
  };

 public:
  __device__ RollingMainloop(const typename Loads::Arguments& params, std::uint32_t shared)
      : stages_(params, shared), first_(shared) {}

  // The products of one tile, of so many thirds of the width: in as many thirds of MMA_N.
  template <class Accumulators>
  CUTE_DEVICE void run(int thirds, Accumulators& tCrC) {  // ((2,2),MMA_M,MMA_N)
    switch (thirds) {
      case 1: return run_thirds<1>(tCrC);
      case 2: return run_thirds<2>(tCrC);
      default: return run_thirds<3>(tCrC);
    }
  }

  __device__ static void end() { Loads::end(); }

 private:
  template <int thirds, class Accumulators>
  CUTE_DEVICE void run_thirds(Accumulators& tCrC) {
    constexpr int columns = atoms_n / 3 * thirds;
    first_.b -= bytes_before<thirds>();
    Fragments<columns> f;
    read_a(0, f);
#pragma unroll
    for (int n = 0; n < columns; n += 2) read_b(n, f);
    stages_.for_each_k_tile([&] { k_tile<columns>(f, tCrC); });
    first_.b += bytes_before<thirds>();
  }

  // A narrow tile's weights begin where a whole one's do, in both halves, and the warps divide what is there: where
  // each takes rows of both halves, so many bytes before a whole tile's.
  template <int thirds>
  __device__ static std::uint32_t bytes_before() {
    if (thirds == 3 || !C.gated_pair()) return 0;
    return thread_here() / 32 / C.warps_m * (Layouts::warp_n / 6 * (3 - thirds)) * row_bytes;
  }

  // The products of one k-tile, whose first fragments have been read; ends with those of the next.
  template <int columns, class Accumulators>
  CUTE_DEVICE void k_tile(Fragments<columns>& f, Accumulators& tCrC) {
    constexpr int rows = atoms_m;
    // By then all warps are done with the k-tile before, and the requested one has as long as one and a half take.
    // Which row exactly is measured: ptxas orders the loop differently each time (docs/kernels/sm80_log.md).
    constexpr int request_row = k_blocks / 2 * rows - 3;
    typename Loads::Request request;
    cute::for_each(cute::make_int_sequence<k_blocks>{}, [&](auto block) {
      cute::for_each(cute::make_int_sequence<rows>{}, [&](auto m) {
        constexpr bool last = m == rows - 1;
        constexpr int row = block * rows + m;  // of the k-tile's rows of products
        if constexpr (row == request_row - 1) request = stages_.prepare();
        if constexpr (row == request_row) stages_.issue(request);
        if constexpr (row == k_blocks * rows - 2) stages_.look_ahead();
        if constexpr (last) go_to_next(block, f.a[m % 2][0]);
#pragma unroll
        for (int i = 0; i < columns; ++i) {
          const int n = (block + m) % 2 == 0 ? i : columns - 1 - i;  // there and back: an operand is used again
          auto c = tCrC(cute::_, m, n);
          const auto& a = f.a[m % 2];
          Layouts::MmaAtom::fma(c(0), c(1), c(2), c(3), a[0], a[1], a[2], a[3], f.b[n][0], f.b[n][1], c(0), c(1), c(2),
                                c(3));
          if (i == 0) read_a((m + 1) % rows, f);
          if (last && i % 2 == 1) read_b(n / 2 * 2, f);
        }
      });
    });
  }

  // From here on fragments are read from the k-block after `block`. Of what was read before, `read_last` comes last: a
  // stage is given back when that is in its register, for which the next product waits too.
  CUTE_DEVICE void go_to_next(int block, std::uint32_t read_last) {
    const int next = (block + 1) % k_blocks;
    if (next == 0) stages_.advance(read_last);
    flip(first_.a, (block ^ next) * Addresses::k_block_bytes);
    flip(first_.b, (block ^ next) * Addresses::k_block_bytes);
  }

  template <int columns>
  CUTE_DEVICE void read_a(int m, Fragments<columns>& to) const {
    auto& r = to.a[m % 2];
    load_matrices(first_.a + stages_.current() + m * Addresses::a_step, r[0], r[1], r[2], r[3]);
  }

  // The weights of products n and n + 1.
  template <int columns>
  CUTE_DEVICE void read_b(int n, Fragments<columns>& to) const {
    load_matrices(first_.b + stages_.current() + n / 2 * Addresses::b_step, to.b[n][0], to.b[n][1], to.b[n + 1][0],
                  to.b[n + 1][1]);
  }

  Loads stages_;
  Addresses first_;  // of the k-block whose fragments are read
};

}  // namespace gatefold::cuda::sm80
