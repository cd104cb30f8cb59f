#pragma once

#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/route_row.cuh"

// What an event does before its first MLP, in one kernel, with plain multiply-adds: for fp32, and for sizes and
// pointers that no 16-byte access can take (route_mma_kernel.cuh takes all others). A block has 4 or 8 rows of s, and
// does for them
//
//   fill      s row -> shared memory, times router_norm, a slab of columns at a time; its sum of squares on the way
//   multiply  . router_w^T, 64 of the router's rows at a time: a warp has eight, a lane every 32nd piece of the columns
//   finish    a warp for each row (route_row.cuh)
namespace gatefold::cuda::swap_ffn {

struct RouteTile {
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int slab = 1024;         // columns in shared memory at a time
  static constexpr int routes_of_warp = 8;  // of the router's rows at a time
  static constexpr int routes = warps * routes_of_warp;
  static constexpr int square_parts = 2;  // of a row's sum of squares, whichever number of rows a block has
};

template <int rows>
struct RouteStorage {
  float row[rows][RouteTile::slab];
  float sums[rows][RouteTile::routes];
  double squares[rows][RouteTile::square_parts];
};

// Element i of piece p of a slab. Of pieces of eight the halves lie apart, so that 16-byte accesses of neighbouring
// lanes are neighbours, too.
template <int elements>
__device__ __forceinline__ constexpr int place_in_slab(int piece, int i) {
  if constexpr (elements == 8) return i / 4 * (RouteTile::slab / 2) + piece * 4 + i % 4;
  return piece * elements + i;
}

template <int elements>
__device__ __forceinline__ void load_slab(const float* row, int piece, float (&values)[elements]) {
  if constexpr (elements == 1) {
    values[0] = row[piece];
  } else {
#pragma unroll
    for (int i = 0; i < elements; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(row + place_in_slab<elements>(piece, i));
      values[i] = four.x;
      values[i + 1] = four.y;
      values[i + 2] = four.z;
      values[i + 3] = four.w;
    }
  }
}

template <int elements>
__device__ __forceinline__ void store_slab(float* row, int piece, const float (&values)[elements]) {
  if constexpr (elements == 1) {
    row[piece] = values[0];
  } else {
#pragma unroll
    for (int i = 0; i < elements; i += 4) {
      *reinterpret_cast<float4*>(row + place_in_slab<elements>(piece, i)) = {values[i], values[i + 1], values[i + 2],
                                                                             values[i + 3]};
    }
  }
}

// Of 2 half values a lane keeps one half, and adds what its partner gives away of it.
template <int half, int count>
__device__ __forceinline__ void halve(float (&values)[count], int step) {
  const bool upper = (static_cast<int>(threadIdx.x) & step) != 0;
#pragma unroll
  for (int i = 0; i < half; ++i) {
    const float given = upper ? values[i] : values[i + half];
    const float kept = upper ? values[i + half] : values[i];
    values[i] = kept + __shfl_xor_sync(0xffffffffU, given, step);
  }
}

// Sums of `count` values over the 32 lanes; lane l then holds values l * count / 32 and following, by 31 exchanges for
// 32 values, where each sum for itself would take five.
template <int count>
__device__ __forceinline__ void sum_over_lanes(float (&values)[count]) {
  halve<count / 2>(values, 16);
  halve<count / 4>(values, 8);
  halve<count / 8>(values, 4);
  halve<count / 16>(values, 2);
  halve<count / 32>(values, 1);
}

template <class Element, int rows, bool vectors>
class RouteBlock {
 public:
  using ThisPiece = Piece<Element, vectors>;
  using Storage = RouteStorage<rows>;
  static constexpr int elements = ThisPiece::elements;
  static constexpr int slab_pieces = RouteTile::slab / elements;

  __device__ RouteBlock(const RouteParams& p, Storage& storage)
      : p_(p),
        storage_(storage),
        first_row_(std::int64_t{blockIdx.x} * rows),
        pieces_(p.columns / elements),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() {
    RouteLogits logits;
    for (std::int64_t first_route = 0; first_route < p_.width; first_route += RouteTile::routes) {
      multiply(first_route);
      if (warp_ < rows) add_logits(first_route, logits);
      __syncthreads();
    }
    const std::int64_t row = first_row_ + warp_;
    if (warp_ >= rows || row >= p_.rows) return;
    const unsigned map = p_.o.stream_map[row];
    __syncwarp();  // all lanes have read the map
    RouteRow<Element, vectors>(p_, lane_).finish(logits, route_bias(p_), row, map, inverse_rms());
  }

 private:
  // Pieces [begin, begin + slab_pieces) of the block's rows. Two parts of a row's pieces, 32 lanes each, for its
  // squares.
  template <bool with_squares>
  __device__ void fill(std::int64_t begin, double (&squares)[rows * RouteTile::square_parts / RouteTile::warps]) {
    constexpr int parts = rows * RouteTile::square_parts / RouteTile::warps;  // of this warp
    const int row = warp_ * parts / RouteTile::square_parts;
    const bool inside = first_row_ + row < p_.rows;
    const std::byte* const from = p_.o.s + (first_row_ + row) * p_.columns * static_cast<int>(sizeof(Element));
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int first = (warp_ * parts + part) % RouteTile::square_parts * 32 + lane_;
#pragma unroll 2
      for (int piece = first; piece < slab_pieces; piece += 32 * RouteTile::square_parts) {
        if (begin + piece >= pieces_) break;
        float values[elements];
        float norm[elements];
        ThisPiece::unpack(inside ? ThisPiece::load(from, begin + piece) : ThisPiece::nothing(), values);
        load_floats(p_.o.router_norm + (begin + piece) * elements, norm);
        if constexpr (with_squares) squares[part] = add_squares(squares[part], values);
#pragma unroll
        for (int i = 0; i < elements; ++i) values[i] *= norm[i];
        store_slab(storage_.row[row], piece, values);
      }
    }
  }

  // storage_.sums of the router's rows from first_route on; the first time the rows' squares too.
  __device__ void multiply(std::int64_t first_route) {
    constexpr int parts = rows * RouteTile::square_parts / RouteTile::warps;
    double squares[parts] = {};
    float sums[rows * RouteTile::routes_of_warp] = {};  // [rows][routes_of_warp]
    const std::byte* weights[RouteTile::routes_of_warp];
#pragma unroll
    for (int j = 0; j < RouteTile::routes_of_warp; ++j) {
      // Past the last it is the last one's, whose sums nobody reads.
      const std::int64_t r = min(first_route + warp_ * RouteTile::routes_of_warp + j, p_.width - 1);
      weights[j] = p_.o.router_w + r * p_.columns * static_cast<int>(sizeof(Element));
    }
    for (std::int64_t begin = 0; begin < pieces_; begin += slab_pieces) {
      if (begin > 0) __syncthreads();
      if (first_route == 0) {
        fill<true>(begin, squares);
      } else {
        fill<false>(begin, squares);
      }
      __syncthreads();
      for (int piece = lane_; piece < slab_pieces; piece += 32) {
        if (begin + piece >= pieces_) break;
        add_products(begin, piece, weights, sums);
      }
    }
    if (first_route == 0) keep_squares(squares);
    sum_over_lanes(sums);
#pragma unroll
    for (int i = 0; i < rows / 4; ++i) {
      const int value = lane_ * (rows / 4) + i;
      storage_.sums[value / RouteTile::routes_of_warp]
                   [warp_ * RouteTile::routes_of_warp + value % RouteTile::routes_of_warp] = sums[i];
    }
    __syncthreads();
  }

  __device__ __forceinline__ void add_products(std::int64_t begin, int piece,
                                               const std::byte* const (&weights)[RouteTile::routes_of_warp],
                                               float (&sums)[rows * RouteTile::routes_of_warp]) const {
    typename ThisPiece::Raw raw[RouteTile::routes_of_warp];
#pragma unroll
    for (int j = 0; j < RouteTile::routes_of_warp; ++j) raw[j] = ThisPiece::load(weights[j], begin + piece);
    float values[rows][elements];
#pragma unroll
    for (int row = 0; row < rows; ++row) load_slab(storage_.row[row], piece, values[row]);
#pragma unroll
    for (int j = 0; j < RouteTile::routes_of_warp; ++j) {
      float w[elements];
      ThisPiece::unpack(raw[j], w);
#pragma unroll
      for (int row = 0; row < rows; ++row) {
#pragma unroll
        for (int i = 0; i < elements; ++i) {
          float& sum = sums[row * RouteTile::routes_of_warp + j];
          sum = fmaf(values[row][i], w[i], sum);
        }
      }
    }
  }

  __device__ void keep_squares(const double (&squares)[rows * RouteTile::square_parts / RouteTile::warps]) {
    constexpr int parts = rows * RouteTile::square_parts / RouteTile::warps;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const double sum = warp_sum(squares[part]);
      const int index = warp_ * parts + part;
      if (lane_ == 0) storage_.squares[index / RouteTile::square_parts][index % RouteTile::square_parts] = sum;
    }
  }

  __device__ float inverse_rms() const {
    return inverse_rms_of(storage_.squares[warp_][0] + storage_.squares[warp_][1], p_.columns, p_.eps);
  }

  __device__ void add_logits(std::int64_t first_route, RouteLogits& logits) const {
    const auto scale = static_cast<double>(inverse_rms());
#pragma unroll
    for (int i = 0; i < RouteTile::routes / 32; ++i) {
      const std::int64_t r = first_route + i * 32 + lane_;
      if (r >= p_.width) continue;
      const double z = static_cast<double>(storage_.sums[warp_][i * 32 + lane_]) * scale;
      RouteRow<Element, vectors>::add(logits, route_head(p_, r), z);
    }
  }

  const RouteParams& p_;
  Storage& storage_;
  std::int64_t first_row_;
  std::int64_t pieces_;  // of a row
  int warp_;
  int lane_;
};

template <class Element, int rows, bool vectors>
__global__ void __launch_bounds__(RouteTile::threads) route_kernel(const __grid_constant__ RouteParams p) {
  __shared__ RouteStorage<rows> storage;
  ptx::launch_next_grid();
  RouteBlock<Element, rows, vectors> block(p, storage);
  ptx::wait_for_previous_grid();
  block.run();
}

}  // namespace gatefold::cuda::swap_ffn
