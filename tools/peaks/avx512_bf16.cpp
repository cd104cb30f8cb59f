#include <immintrin.h>

#include "peaks/tile.hpp"

namespace gatefold::peaks {
namespace {

struct Avx512Bf16 {
  using Vector = __m512;
  using Operand = __m512i;
  static constexpr int tokens = 6;
  static constexpr int flops = 2 * 32;

  static GATEFOLD_PEAK Operand load(const std::byte* from) { return *reinterpret_cast<const Operand*>(from); }
  static GATEFOLD_PEAK Vector multiply_add(Operand a, Operand b, Vector sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};

}  // namespace

constinit const ProductLoop avx512_bf16_products = product_loop<Avx512Bf16>("avx512_bf16", Operands::bf16);

}  // namespace gatefold::peaks
