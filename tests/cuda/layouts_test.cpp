#include <string_view>

#include "kernel_shapes.hpp"
#include "ops/targets.hpp"

// Layouts through the kernels with the largest tiles, each of which follows the weight rows in its own way: on an H200
// their tiles of these shapes fill most of one round, where smaller ones would take several.
namespace gatefold::test {
namespace {

// Tensor core kernels of 16-bit types: the others have one size of tile.
std::vector<Target> large_tile_targets() {
  std::vector<Target> all = targets({GATEFOLD_OP_GATE_UP});
  std::erase_if(all, [](const Target& t) {
    const std::string_view implementation = t.implementation;
    return t.dtype == GATEFOLD_DTYPE_FP32 || (implementation != "sm80" && implementation != "sm90");
  });
  return all;
}

class ProductsOfPairs : public TargetTest {
 protected:
  // All layouts in the thorough mode, otherwise about one in five.
  void expect_right_in_layouts(std::int64_t tokens, std::int64_t hidden_size) {
    constexpr std::int64_t F = 12288;
    Random random = test_random();
    for (const Layout& layout : layouts_of(GetParam().op, F)) {
      if (!thorough() && random() % 5 != 0) continue;
      Spec s = spec(tokens, hidden_size, F);
      s.layout = layout;
      expect_right(s, random);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, ProductsOfPairs, testing::ValuesIn(large_tile_targets()), target_name);

TEST_P(ProductsOfPairs, LayoutsInTilesOf128Tokens) { expect_right_in_layouts(65, 72); }
TEST_P(ProductsOfPairs, LayoutsInTilesOf256Tokens) { expect_right_in_layouts(130, 136); }

// Blocks of 32 rows, which most tiles' halves cut: these come box by box.
TEST_P(ProductsOfPairs, EveryCompiledKernelOnBlocksThatItsTilesCut) {
  Random random = test_random();
  const auto interleaved = [&](std::int64_t T, std::int64_t D, std::int64_t F) {
    Spec s = spec(T, D, (F + 31) / 32 * 32);
    s.layout = Layout::interleaved_up_gate(32);
    return s;
  };
  const auto shapes = shapes_by_kernel(interleaved, GetParam().implementation);
  if (shapes.empty()) GTEST_SKIP() << GetParam().implementation << " takes none of these descriptions";
  for (const auto& [kernel, specs] : shapes) {
    SCOPED_TRACE(kernel);
    expect_right(specs.front(), random);
  }
}

}  // namespace
}  // namespace gatefold::test
