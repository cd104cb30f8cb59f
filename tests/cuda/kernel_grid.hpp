#pragma once

#include <cstdint>

namespace gatefold::test {

struct GridShape {
  std::int64_t tokens;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
};

// Shapes that every compiled kernel is run on, small ones first. Between them they cut the tiles of each in every way
// (families_test.cpp and sm80_choice_test.cpp of tests/cuda_host hold them to it): tails in all three sizes, tokens
// that leave slabs of a tile empty or fill part of its last, tiles and halves of weight tiles without columns for more
// k-steps than the ring has slots, tiles in whole rounds, a last round in half tiles or narrower ones, several
// tiles for each block, and those of rows with more and with fewer slabs in turn; sums that end within a k-step and
// with one.
inline constexpr GridShape kernel_grid[] = {{50, 136, 520},   {90, 136, 520},   {130, 200, 1032},
                                            {300, 1160, 24},  {105, 520, 2120}, {225, 320, 1544},
                                            {225, 136, 9544}, {737, 200, 6104}, {673, 136, 10744}};

// And those for few tokens on these, too: sums that are divided among 1, 2, 4 and 8 blocks, of gate_up and of gemm; the
// longest for which x stays in registers, in several tiles for each block.
inline constexpr GridShape few_tokens_grid[] = {{17, 4104, 136}, {33, 1096, 3208}, {40, 1096, 6408}, {9, 4104, 2056},
                                                {9, 136, 16000}, {17, 8200, 136},  {24, 4104, 1544}, {64, 256, 18568},
                                                {64, 72, 24008}, {11, 4104, 1288}, {13, 2040, 3208}, {9, 4088, 2128},
                                                {7, 8184, 2120}};

}  // namespace gatefold::test
