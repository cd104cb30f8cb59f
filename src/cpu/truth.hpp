#pragma once

#include <array>
#include <cstdint>

#include "core/problem.hpp"
#include "cpu/products.hpp"

namespace gatefold::cpu {

// The results of one op in double precision, a tile at a time, with what their error bounds are made of.
struct Tile {
  struct Entry {
    double value = 0.0;           // act(gate) * up, or x . w^T
    double gate = 0.0;            // before the activation, with its bias
    double up = 0.0;              // before the clamp, with its bias
    double activated = 0.0;       // act(gate); 1 for gemm
    double factor = 0.0;          // what act(gate) is multiplied by
    double gate_magnitude = 0.0;  // A_g = sum |x||w_gate| + |b_gate|, 0 where gate is read from memory
    double up_magnitude = 0.0;    // A_u
  };
  std::array<std::array<Entry, tile_rows>, tile_rows> entries{};
};

// Entries [row, row + rows) x [column, column + columns) of an op; for mlp, of its h; rows, columns <= tile_rows.
struct TileRange {
  std::int64_t row = 0;
  std::int64_t column = 0;
  int rows = 0;
  int columns = 0;
};
Tile truth(const Problem& problem, const Operands& operands, const TileRange& range);

// The number of tiles in a [tokens, columns] result, and tile `index` of them.
std::int64_t tile_count(std::int64_t tokens, std::int64_t columns);
TileRange tile_range(std::int64_t tokens, std::int64_t columns, std::int64_t index);

}  // namespace gatefold::cpu
