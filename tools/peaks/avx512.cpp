#include <immintrin.h>

#include "peaks/tile.hpp"

namespace gatefold::peaks {
namespace {

struct Avx512 {
  using Vector = __m512;
  using Operand = __m512;
  using Words = __m512i;
  static constexpr int tokens = 6;  // 24 of 32 registers hold sums
  static constexpr int flops = 2 * 16;

  static GATEFOLD_PEAK Operand load(const std::byte* from) { return *reinterpret_cast<const Operand*>(from); }
  static GATEFOLD_PEAK Vector multiply_add(Operand a, Operand b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static GATEFOLD_PEAK Words mix(Words mixed, const std::byte* from) {
    return _mm512_xor_si512(mixed, *reinterpret_cast<const Words*>(from));
  }
};

}  // namespace

constinit const ProductLoop avx512_products = product_loop<Avx512>("avx512", Operands::fp32);
constinit const ReadLoop avx512_reads[2] = {{read_streams<Avx512, 1>}, {read_streams<Avx512, 4>}};

}  // namespace gatefold::peaks
