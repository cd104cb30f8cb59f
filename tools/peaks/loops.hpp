#pragma once

#include <cstddef>
#include <cstdint>

// Loops that do nothing but what a machine's peak is counted in. Each source that holds some is compiled for one
// instruction set, and calls no function of anybody else: of several copies the linker keeps one, for every machine.
namespace gatefold::peaks {

enum class Operands : std::uint8_t { fp32, bf16 };

// Products and additions, as many at a time as the library's kernels of the same name have in flight. The operands come
// from the first-level cache, as they do there: random numbers, since equal ones take less power and run faster.
struct ProductLoop {
  const char* instruction_set;  // as the library's kernels are named
  Operands operands;
  std::size_t operand_bytes;  // aligned to 64
  double flops_per_pass;      // over the operands
  float (*run)(const std::byte* operands, std::int64_t passes);
};

// Reads all of `bytes`, a multiple of read_unit, from an address aligned to 64; what it returns depends on all of them.
struct ReadLoop {
  std::uint64_t (*run)(const std::byte* data, std::size_t bytes);
};
constexpr std::size_t read_unit = 4096;

extern const ProductLoop portable_products;
extern const ReadLoop portable_reads[2];
#if defined(__x86_64__)
extern const ProductLoop avx2_products;
extern const ReadLoop avx2_reads[2];
extern const ProductLoop avx512_products;
extern const ReadLoop avx512_reads[2];
extern const ProductLoop avx512_bf16_products;
extern const ProductLoop amx_bf16_products;
extern const ProductLoop amx_bf16x3_products;
extern const ProductLoop amx_bf16x2_products;
#elif defined(__aarch64__)
extern const ProductLoop neon_products;
extern const ReadLoop neon_reads[2];
#endif

}  // namespace gatefold::peaks
