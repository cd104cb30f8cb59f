#include "peaks/tile.hpp"

// The compiler's own vectors of four, as in the library's portable kernels.
namespace gatefold::peaks {
namespace {

struct Portable {
  using Vector = float __attribute__((vector_size(16)));
  using Operand = Vector;
  using Words = std::uint64_t __attribute__((vector_size(16)));
  static constexpr int tokens = 2;
  static constexpr int flops = 2 * 4;

  static GATEFOLD_PEAK Operand load(const std::byte* from) { return *reinterpret_cast<const Operand*>(from); }
  static GATEFOLD_PEAK Vector multiply_add(Operand a, Operand b, Vector sum) { return a * b + sum; }
  static GATEFOLD_PEAK Words mix(Words mixed, const std::byte* from) {
    return mixed ^ *reinterpret_cast<const Words*>(from);
  }
};

}  // namespace

constinit const ProductLoop portable_products = product_loop<Portable>("portable", Operands::fp32);
constinit const ReadLoop portable_reads[2] = {{read_streams<Portable, 1>}, {read_streams<Portable, 4>}};

}  // namespace gatefold::peaks
