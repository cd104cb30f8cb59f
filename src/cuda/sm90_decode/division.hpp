#pragma once

#include <array>
#include <cstdint>

#include "core/problem.hpp"
#include "cuda/sm90_decode/config.hpp"

// How the weights are cut into tiles, and how many blocks divide a tile's sums among them: pure host code.
namespace gatefold::cuda::sm90_decode {

constexpr std::array splits{1, 2, 4, Config::largest_split};

// How many clusters of so many blocks a device holds at a time, in the order of `splits`; 0: none.
using ResidentClusters = std::array<int, splits.size()>;

// Rows of a slab, best first where they cost the same. 56: the 224 tiles that 64 rows make of Llama 8B's gate_up leave
// 132 multiprocessors with two rounds and 85 % of work in them; 256 tiles of 56 rows with 97 %. 48 and 40: of Qwen3
// 4B's down-projection, 2560 columns, tiles of 128 rows are 20, of which clusters of four make 80 blocks; of 96 rows
// 27, 108. Low slabs share a wgmma and have no other height.
constexpr std::array<int, 4> slab_heights(int slab) {
  return slab == Config::wgmma_rows ? std::array{64, 56, 48, 40} : std::array{slab, slab, slab, slab};
}

struct Cut {
  int split = 0;  // blocks of a cluster; 0: the device holds none
  int slab_rows = Config{}.slab;
};

std::int64_t row_tiles(Product product, const Problem& problem, int slab_rows);
std::int64_t k_steps(const Config& config, const Problem& problem);

// Whether slabs of so many rows are whole blocks of the layout, or parts of one.
bool divides(const Problem& problem, int slab_rows);

// What changes from call to call, in units that the kernel needs.
struct Geometry {
  std::int32_t tokens;
  bool weights_settled;      // Operands::weights_settled
  std::int32_t block;        // rows of a half before the other half begins (the layout's block); gemm: all
  std::int32_t slab_rows;    // of which a tile has two slabs
  std::int32_t k_steps;      // of a tile, by all blocks of its cluster: ceil(D / tile_k)
  std::int32_t run_steps;    // of these, the first ones: whose rows are whole lines, requested as runs
  std::int32_t token_tiles;  // ceil(tokens / the config's)
  std::int32_t tiles;        // of weight rows and tokens
  std::int32_t split;        // blocks of a cluster
};

// The cut by which the blocks with most to do have least, of the splits that the device can hold and that leave no
// block without terms. It does not hang on the number of tokens, and so the order of a sum's terms doesn't either.
Cut cut_of(const Config& config, const Problem& problem, const ResidentClusters& clusters);

Geometry geometry_of(const Config& config, const Problem& problem, const Operands& operands, const Cut& cut);

}  // namespace gatefold::cuda::sm90_decode
