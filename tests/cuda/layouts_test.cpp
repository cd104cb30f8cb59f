#include <string_view>

#include "ops/targets.hpp"
#include "support/kernels_of.hpp"

// Layouts through every kernel, each of which follows the weight rows in its own way.
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

class ProductsOfPairs : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, ProductsOfPairs, testing::ValuesIn(large_tile_targets()), target_name);

// All layouts in the thorough mode, otherwise about one in five.
TEST_P(ProductsOfPairs, EveryLayoutByEveryKernel) {
  constexpr std::int64_t F = 768;
  Random random = test_random();
  for (const Layout& layout : layouts_of(GetParam().op, F)) {
    Spec s = spec(130, 136, F);
    s.layout = layout;
    for (const std::string& kernel : kernels_of(s, GetParam().implementation)) {
      if (thorough() || random() % 5 == 0) expect_right_by(kernel, s, random);
    }
  }
}

// Blocks of 32 rows, which most tiles' halves cut: these come in several boxes.
TEST_P(ProductsOfPairs, BlocksThatTilesCut) {
  Random random = test_random();
  Spec s = spec(225, 200, 1568);
  s.layout = Layout::interleaved_up_gate(32);
  for (const std::string& kernel : kernels_of(s, GetParam().implementation)) expect_right_by(kernel, s, random);
}

}  // namespace
}  // namespace gatefold::test
