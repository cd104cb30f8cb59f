#include "cpu/loops/avx512_outer.hpp"

// bf16 by AVX-512 BF16: 32 products at a time, two of them added to each sum. They are rounded to nearest even;
// subnormal factors count as 0.
namespace gatefold::cpu {
namespace {

struct Pairs : Avx512Sums {
  using Element = std::uint16_t;
  using Operand = __m512i;
  static constexpr bool in_place = true;
  static constexpr int parts = 1;
  static constexpr int pairs = 2;
  static constexpr std::int64_t step = 32;
  static constexpr std::int64_t k_block = 2048;

  static GATEFOLD_LOOP Operand load(const Element* from, int /*part*/) { return _mm512_loadu_si512(from); }
  static GATEFOLD_LOOP Operand load_rest(const Element* from, int /*part*/, int count) {
    return _mm512_maskz_loadu_epi16((std::uint32_t{1} << count) - 1U, from);
  }
  static GATEFOLD_LOOP Vector multiply_add(Operand a, Operand b, Vector sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};

constexpr Kernel kernels[] = {make_outer_kernel<Pairs>("avx512_bf16", DType::bf16, 72)};

}  // namespace

KernelList avx512_bf16_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
