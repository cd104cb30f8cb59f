#pragma once

#include <cstdint>

#include "cuda/common/element.cuh"
#include "cuda/decode/config.hpp"
#include "cuda/decode/product.cuh"

namespace gatefold::cuda::decode {

// Adds up the warps' sums of a tile, of tokens_at_once tokens, in the warps' order, and stores the tile's columns.
// There is work for a few warps of the sixteen: they take turns, so that none's ring falls behind the others'. (Where
// the sums have one buffer all wait for them, and there is no register to keep the turn in.)
template <class Element, Product product, Config config>
class Epilogue {
 public:
  // By all threads. sums: [warps][tokens_at_once][sums_pitch]
  __device__ __forceinline__ void store(const Arguments& p, int tile, std::int64_t first_token, const float* sums) {
#pragma unroll 1
    for (int i = place(); i < outputs; i += Config::threads) {
      const int token = i / columns;
      const int j = i % columns;
      const std::int64_t column = std::int64_t{tile} * columns + j;
      if (first_token + token >= p.tokens || column >= p.columns) continue;
      const auto total = [&](int row) {
        float sum = 0.0F;
#pragma unroll
        for (int warp = 0; warp < Config::warps; ++warp) {
          sum += sums[warp * config.warp_sums() + token * config.sums_pitch() + row];
        }
        return sum;
      };
      const float value = TileOf<product>::template output<Element>(p, column, j, total);
      reinterpret_cast<Element*>(p.out + (first_token + token) * p.out_stride)[column] = from_float<Element>(value);
    }
    if (takes_turns) first_thread_ = (first_thread_ + outputs) % Config::threads;
  }

 private:
  static constexpr int columns = tile_columns(product, config);
  static constexpr int outputs = Config::tokens_at_once * columns;
  static constexpr bool takes_turns = config.sum_buffers == 2;

  // This thread's among those whose turn it is.
  __device__ __forceinline__ int place() const {
    const int thread = static_cast<int>(threadIdx.x);
    return takes_turns ? (thread + Config::threads - first_thread_) % Config::threads : thread;
  }

  int first_thread_ = 0;  // of those whose turn it is
};

}  // namespace gatefold::cuda::decode
