#include <immintrin.h>

#include "peaks/tile.hpp"

namespace gatefold::peaks {
namespace {

struct Avx2 {
  using Vector = __m256;
  using Operand = __m256;
  using Words = __m256i;
  static constexpr int tokens = 3;  // 12 of 16 registers hold sums
  static constexpr int flops = 2 * 8;

  static GATEFOLD_PEAK Operand load(const std::byte* from) { return *reinterpret_cast<const Operand*>(from); }
  static GATEFOLD_PEAK Vector multiply_add(Operand a, Operand b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
  static GATEFOLD_PEAK Words mix(Words mixed, const std::byte* from) {
    return _mm256_xor_si256(mixed, *reinterpret_cast<const Words*>(from));
  }
};

}  // namespace

constinit const ProductLoop avx2_products = product_loop<Avx2>("avx2", Operands::fp32);
constinit const ReadLoop avx2_reads[2] = {{read_streams<Avx2, 1>}, {read_streams<Avx2, 4>}};

}  // namespace gatefold::peaks
