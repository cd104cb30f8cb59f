#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "peaks/loops.hpp"

// What the processor can do at best, with as many threads as OpenMP starts: the best of several windows.
namespace gatefold::peaks {

// By the name of the library's kernels; null where there is none.
const ProductLoop* find_product_loop(std::string_view instruction_set);
std::string known_instruction_sets();

double flops_per_second(const ProductLoop& loop, const std::byte* operands);

// Reads `bytes` at `data`, aligned to 64, in one stream and in several, and says how fast the faster was. Of
// a thread's part each thread alone reads and, in `write_parts`, writes: on machines with several memories it lies
// near.
void write_parts(std::byte* data, std::size_t bytes);
double read_bytes_per_second(const std::byte* data, std::size_t bytes);

}  // namespace gatefold::peaks
