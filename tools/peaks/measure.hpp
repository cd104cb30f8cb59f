#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "peaks/loops.hpp"

// What the processor can do at best, with as many threads as OpenMP starts.
namespace gatefold::peaks {

// To be timed, by turns with what is held against it: a processor's speed and its memory's drift.
struct Work {
  std::function<void()> run;
  double amount;  // of a run: floating-point operations, or bytes
};

// By the name of the library's kernels; null where there is none.
const ProductLoop* find_product_loop(std::string_view instruction_set);
std::string known_instruction_sets();

// Some milliseconds of them.
Work products(const ProductLoop& loop, const std::byte* operands);

// The widest loops that a processor can run, of which gatefold_device_info says `features`, in one stream and in
// several: by two cores with AVX-512 they read 1.4 times as fast as by vectors of 16 bytes.
std::span<const ReadLoop> read_loops(std::string_view features);

// Reads `bytes` at `data`, aligned to 64, once. Of a thread's part each thread alone reads and, in `write_parts`,
// writes: on machines with several memories it lies near.
void write_parts(std::byte* data, std::size_t bytes);
Work reading(const ReadLoop& loop, const std::byte* data, std::size_t bytes);

}  // namespace gatefold::peaks
