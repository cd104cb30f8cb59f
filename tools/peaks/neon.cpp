#include <arm_neon.h>

#include "peaks/tile.hpp"

namespace gatefold::peaks {
namespace {

struct Neon {
  using Vector = float32x4_t;
  using Operand = float32x4_t;
  using Words = uint64x2_t;
  static constexpr int tokens = 6;
  static constexpr int flops = 2 * 4;

  static GATEFOLD_PEAK Operand load(const std::byte* from) { return vld1q_f32(reinterpret_cast<const float*>(from)); }
  static GATEFOLD_PEAK Vector multiply_add(Operand a, Operand b, Vector sum) { return vfmaq_f32(sum, a, b); }
  static GATEFOLD_PEAK Words mix(Words mixed, const std::byte* from) {
    return veorq_u64(mixed, vld1q_u64(reinterpret_cast<const std::uint64_t*>(from)));
  }
};

}  // namespace

constinit const ProductLoop neon_products = product_loop<Neon>("neon", Operands::fp32);
constinit const ReadLoop neon_reads[2] = {{read_streams<Neon, 1>}, {read_streams<Neon, 4>}};

}  // namespace gatefold::peaks
