#include <arm_neon.h>

#include "cpu/loops/nest.hpp"

// fp32, fp16 and bf16 by what every processor of AArch64 has: 32 vectors of four, of which 24 hold sums, four the
// weights and one x. A step is a line of 64 bytes, so that no line is asked for twice.
namespace gatefold::cpu {
namespace {

struct NeonSums {
  using Vector = float32x4_t;
  using Operand = float32x4_t;
  static constexpr int lanes = 4;
  static constexpr bool parts_share_words = false;
  static constexpr int pairs = 1;
  static constexpr int tile_tokens = 6;
  static constexpr int streamed_tokens = 6;
  static constexpr int widened_tokens = tile_tokens;
  static constexpr std::int64_t widened_cache = widened_in_2_mib;
  static constexpr std::int64_t k_block = 1024;

  static GATEFOLD_LOOP Vector zero() { return vdupq_n_f32(0.0F); }
  static GATEFOLD_LOOP void store(float* out, Vector values) { vst1q_f32(out, values); }
  static GATEFOLD_LOOP Vector load_widened(const float* x) { return vld1q_f32(x); }
  static GATEFOLD_LOOP Vector multiply_add(Operand a, Operand b, Vector sum) { return vfmaq_f32(sum, a, b); }

  // The fold: neighbours, then the two pairs, of four rows at once.
  template <int tokens>
  static GATEFOLD_LOOP void add_sums(const Vector (&sums)[tokens][tile_rows_of], float* out, bool first) {
#pragma GCC unroll 8
    for (int t = 0; t < tokens; ++t) {
      const Vector rows01 = vpaddq_f32(sums[t][0], sums[t][1]);
      const Vector rows23 = vpaddq_f32(sums[t][2], sums[t][3]);
      const Vector folded = vpaddq_f32(rows01, rows23);
      float* to = out + t * tile_rows_of;
      vst1q_f32(to, first ? folded : vaddq_f32(folded, vld1q_f32(to)));
    }
  }
};

struct Float : NeonSums {
  using Element = float;
  static constexpr bool in_place = true;
  static constexpr int parts = 4;

  static GATEFOLD_LOOP Operand load_four(const float* from) { return vld1q_f32(from); }
};

struct SixteenBits : NeonSums {
  using Element = std::uint16_t;
  static constexpr bool in_place = false;
  static constexpr int parts = 8;
};

struct Fp16 : SixteenBits {
  static GATEFOLD_LOOP Operand load_four(const Element* from) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
  }
};

struct BFloat : SixteenBits {
  static GATEFOLD_LOOP Operand load_four(const Element* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
  }
};

template <class Type>
struct Loads : Type {
  using Element = typename Type::Element;
  using Operand = typename Type::Operand;
  static constexpr std::int64_t step = Type::parts * Type::lanes;

  static GATEFOLD_LOOP Operand load(const Element* from, int part) {
    return Type::load_four(from + part * Type::lanes);
  }
  static GATEFOLD_LOOP Operand load_rest(const Element* from, int part, int count) {
    Element elements[Type::lanes];
    for (int i = 0; i < Type::lanes; ++i) {
      const int k = part * Type::lanes + i;
      elements[i] = k < count ? from[k] : Element{};
    }
    return Type::load_four(elements);
  }
};

constexpr Kernel kernels[] = {make_kernel<Loads<Float>>("neon", DType::fp32),
                              make_kernel<Loads<Fp16>>("neon", DType::fp16),
                              make_kernel<Loads<BFloat>>("neon", DType::bf16)};

}  // namespace

KernelList neon_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
