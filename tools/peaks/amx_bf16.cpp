#include <immintrin.h>

#include "peaks/loops.hpp"

// The matrix unit: two by two tiles of 16 x 16 sums in registers 0 to 3, two of weights in 4 and 5, two of x in 6 and
// 7, each of 16 rows of 64 bytes. The process must have asked for the unit, as the library does before it offers it.
namespace gatefold::peaks {
namespace {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr std::size_t steps = 4;          // of four tiles: 16 KiB of the first-level cache
constexpr std::size_t tile_bytes = 1024;  // 16 x 32 bf16
constexpr double flops_of_tile = 2.0 * 16 * 16 * 32;

float multiply_tiles(const std::byte* operands, std::int64_t passes) {
  const TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::byte* next = operands;
    for (std::size_t step = 0; step < steps; ++step) {
      _tile_loadd(4, next, 64);
      _tile_loadd(6, next + tile_bytes, 64);
      _tile_loadd(5, next + 2 * tile_bytes, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, next + 3 * tile_bytes, 64);
      _tile_dpbf16ps(1, 5, 6);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
      next += 4 * tile_bytes;
    }
  }
  alignas(64) float sums[4][256];
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_stored(2, sums[2], 64);
  _tile_stored(3, sums[3], 64);
  // The stores are no accesses that the compiler knows of.
  __asm__ volatile("" : : "r"(sums) : "memory");
  _tile_release();
  float total = 0.0F;
  for (const auto& tile : sums) {
    for (const float sum : tile) total += sum;
  }
  return total;
}

constexpr ProductLoop product_loop(const char* name, int products) noexcept {
  return {name, Operands::bf16, steps * 4 * tile_bytes, steps * 4 * flops_of_tile / products, multiply_tiles};
}

}  // namespace

constinit const ProductLoop amx_bf16_products = product_loop("amx_bf16", 1);
// fp32 as three bf16, fp16 as two: so many products of these make one.
constinit const ProductLoop amx_bf16x3_products = product_loop("amx_bf16x3", 6);
constinit const ProductLoop amx_bf16x2_products = product_loop("amx_bf16x2", 4);

}  // namespace gatefold::peaks
