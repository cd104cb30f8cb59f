#pragma once

#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/route_row.cuh"
#include "cuda/swap_ffn/split_mma.cuh"

// What an event does before its first MLP, in one kernel, for 16-bit types: a block has 8, 16 or 32 rows of s.
//
//   multiply  s times router_norm, exactly, by 64 of the router's rows at a time, and the sums of squares: warp w has
//             columns 32 w to 32 w + 31 of every 256, straight from L2 to registers in 16-byte pieces
//   add up    the warps' sums, in their order
//   finish    a warp for each row (route_row.cuh)
//
// Every block reads the router's weights from L2, 128 KB at the default sizes, which takes a multiprocessor some 2000
// cycles: with 8 rows each 512 rows are 64 blocks, and of more rows 16 or 32 share what a block reads.
namespace gatefold::cuda::swap_ffn {

struct RouteMmaTile {
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int group_columns = 32;   // of a warp at a time
  static constexpr int slabs = 4;            // of 16 of the router's rows
  static constexpr int routes = 16 * slabs;  // at a time
  static constexpr int tile_rows = 8;        // of s, in a tile
  static constexpr int most_rows = 16;       // whose sums are added up at a time
};

template <int tiles>
struct RouteMmaStorage {
  static constexpr int rows = tiles == 1 ? RouteMmaTile::tile_rows : RouteMmaTile::most_rows;
  // One row more than there are: neighbouring routes lie in different banks.
  float sums[RouteMmaTile::warps][RouteMmaTile::routes][rows + 1];
  double squares[RouteMmaTile::warps][tiles * RouteMmaTile::tile_rows];
  RouteHead heads[RouteMmaTile::routes + 1];  // the last one is the bias
};

template <class Element, int tiles>
class RouteMmaBlock {
 public:
  using Tile = RouteMmaTile;
  using Storage = RouteMmaStorage<tiles>;
  using ThisPiece = Piece<Element, true>;
  using Mma = SplitMma<Element>;
  static constexpr int rows = tiles * Tile::tile_rows;
  static constexpr int tiles_at_a_time = Storage::rows / Tile::tile_rows;  // whose sums are added up
  static constexpr int elements = ThisPiece::elements;
  static constexpr auto element_bytes = static_cast<int>(sizeof(Element));
  static_assert(elements == 8 && Tile::warps == Tile::tile_rows);

  __device__ RouteMmaBlock(const RouteParams& p, Storage& storage)
      : p_(p),
        storage_(storage),
        first_row_(std::int64_t{blockIdx.x} * rows),
        pieces_(p.columns / elements),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  // Row warp + 8 i of the block's is the warp's in the end.
  __device__ void run() {
    Operands operands[at_a_time];
    if constexpr (early) load_weights(operands, 0, first_piece());
    if constexpr (early) keep_heads(0);
    ptx::wait_for_previous_grid();
    // Of one row a warp it is under way from the first; with more rows registers are short.
    const unsigned first_map = early && row_of(0) < p_.rows ? p_.o.stream_map[row_of(0)] : 0;
    RouteLogits logits[tiles];
    for (std::int64_t first_route = 0; first_route < p_.width; first_route += Tile::routes) {
      if (early && first_route > 0) keep_heads(first_route);
      Sums sums{};
      double squares[tiles] = {};
      multiply(first_route, operands, sums, squares);
      if (first_route == 0) keep_squares(squares);
#pragma unroll
      for (int first = 0; first < tiles; first += tiles_at_a_time) {
        keep_sums(sums, first);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < tiles_at_a_time; ++i) add_logits(first_route, i, first + i, logits[first + i]);
        __syncthreads();
      }
    }
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      if (row_of(i) >= p_.rows) continue;
      Row(p_, lane_).finish(logits[i], early ? storage_.heads[Tile::routes] : route_bias(p_), row_of(i),
                            early ? first_map : p_.o.stream_map[row_of(i)], inverse_rms(i));
    }
  }

 private:
  using Row = RouteRow<Element, true>;
  using Sums = float[tiles][Tile::slabs][4];

  // What a lane has of 32 columns.
  struct Operands {
    uint4 weights[Tile::slabs][2];
    uint4 s[tiles];
    float norm[elements];
  };

  // Groups whose loads are under way together, as far as registers go: a warp has four of 1024 columns. fp16's products
  // take more of them.
  static constexpr int at_a_time = tiles == 1 && Mma::parts_words == 8 ? 4 : tiles < 4 ? 2 : 1;
  // The weights of the first are loaded before the kernel before has ended: it is the step's own, and no kernel of the
  // step writes them (start.cu).
  static constexpr bool early = tiles == 1;
  static constexpr int group_pieces = Tile::group_columns / elements;
  static constexpr int step = Tile::warps * group_pieces;  // pieces from one group of a warp to its next

  // The warp's own in the end.
  __device__ std::int64_t row_of(int tile) const { return first_row_ + tile * Tile::tile_rows + warp_; }

  // Small and settled, as the weights are: nobody waits for them when the sums are there.
  __device__ void keep_heads(std::int64_t first_route) {
    const auto i = static_cast<int>(threadIdx.x);
    if (i == Tile::routes) storage_.heads[i] = route_bias(p_);
    if (i < Tile::routes && first_route + i < p_.width) storage_.heads[i] = route_head(p_, first_route + i);
  }

  __device__ std::int64_t first_piece() const { return warp_ * group_pieces + lane_ % 4; }

  __device__ __forceinline__ void load_weights(Operands& to, std::int64_t first_route, std::int64_t piece) const {
    const bool inside = piece < pieces_;
#pragma unroll
    for (int i = 0; i < 2 * Tile::slabs; ++i) {
      // Past the last it is the last one's, whose sums nobody reads.
      const std::int64_t r = min(first_route + i * 8 + lane_ / 4, p_.width - 1);
      to.weights[i / 2][i % 2] =
          inside ? ThisPiece::load(p_.o.router_w + r * p_.columns * element_bytes, piece) : ThisPiece::nothing();
    }
    load_floats(p_.o.router_norm + (inside ? piece : 0) * elements, to.norm);
  }

  __device__ __forceinline__ void load_rows(Operands& to, std::int64_t piece) const {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      const std::int64_t row = first_row_ + i * Tile::tile_rows + lane_ / 4;
      to.s[i] = piece < pieces_ && row < p_.rows ? ThisPiece::load(p_.o.s + row * p_.columns * element_bytes, piece)
                                                 : ThisPiece::nothing();
    }
  }

  __device__ __forceinline__ void load_weights(Operands (&to)[at_a_time], std::int64_t first_route,
                                               std::int64_t piece) const {
#pragma unroll
    for (int i = 0; i < at_a_time; ++i) load_weights(to[i], first_route, piece + i * step);
  }

  // The weights of the first groups have been loaded early where it is the router's first rows' turn.
  __device__ __forceinline__ void multiply(std::int64_t first_route, Operands (&operands)[at_a_time], Sums& sums,
                                           double (&squares)[tiles]) const {
    for (std::int64_t piece = first_piece(); piece - lane_ % 4 < pieces_; piece += at_a_time * step) {
      if (!early || first_route > 0 || piece != first_piece()) load_weights(operands, first_route, piece);
#pragma unroll
      for (int i = 0; i < at_a_time; ++i) load_rows(operands[i], piece + i * step);
#pragma unroll
      for (int i = 0; i < at_a_time; ++i) add_products(operands[i], sums, squares);
    }
  }

  __device__ __forceinline__ static void add_products(const Operands& operands, Sums& sums, double (&squares)[tiles]) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      float values[elements];
      ThisPiece::unpack(operands.s[tile], values);
      squares[tile] = add_squares(squares[tile], values);
#pragma unroll
      for (int i = 0; i < elements; ++i) values[i] *= operands.norm[i];
      const typename Mma::Parts parts = Mma::split(values);
#pragma unroll
      for (int slab = 0; slab < Tile::slabs; ++slab) {
        Mma::multiply(sums[tile][slab], operands.weights[slab][0], operands.weights[slab][1], parts);
      }
    }
  }

  // Of the four lanes that have a row of s.
  __device__ void keep_squares(const double (&squares)[tiles]) {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      double sum = squares[i] + __shfl_xor_sync(0xffffffffU, squares[i], 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      if (lane_ % 4 == 0) storage_.squares[warp_][i * Tile::tile_rows + lane_ / 4] = sum;
    }
  }

  __device__ void keep_sums(const Sums& sums, int first_tile) {
#pragma unroll
    for (int tile = 0; tile < tiles_at_a_time; ++tile) {
#pragma unroll
      for (int slab = 0; slab < Tile::slabs; ++slab) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          storage_.sums[warp_][slab * 16 + i / 2 * 8 + lane_ / 4][tile * Tile::tile_rows + lane_ % 4 * 2 + i % 2] =
              sums[first_tile + tile][slab][i];
        }
      }
    }
  }

  __device__ float inverse_rms(int tile) const {
    double squares = 0.0;
#pragma unroll
    for (int w = 0; w < Tile::warps; ++w) squares += storage_.squares[w][tile * Tile::tile_rows + warp_];
    return inverse_rms_of(squares, p_.columns, p_.eps);
  }

  // Tile number `tile` of the block's, number `kept` of those whose sums are kept.
  __device__ void add_logits(std::int64_t first_route, int kept, int tile, RouteLogits& logits) const {
    const auto scale = static_cast<double>(inverse_rms(tile));
#pragma unroll
    for (int i = 0; i < Tile::routes / 32; ++i) {
      const std::int64_t r = first_route + i * 32 + lane_;
      if (r >= p_.width) continue;
      float z = 0.0F;
#pragma unroll
      for (int w = 0; w < Tile::warps; ++w) z += storage_.sums[w][i * 32 + lane_][kept * Tile::tile_rows + warp_];
      Row::add(logits, early ? storage_.heads[i * 32 + lane_] : route_head(p_, r), static_cast<double>(z) * scale);
    }
  }

  const RouteParams& p_;
  Storage& storage_;
  std::int64_t first_row_;
  std::int64_t pieces_;  // of a row
  int warp_;
  int lane_;
};

template <class Element, int tiles>
__global__ void __launch_bounds__(RouteMmaTile::threads, 1) route_mma_kernel(const __grid_constant__ RouteParams p) {
  __shared__ RouteMmaStorage<tiles> storage;
  ptx::launch_next_grid();
  RouteMmaBlock<Element, tiles> block(p, storage);
  block.run();
}

}  // namespace gatefold::cuda::swap_ffn
