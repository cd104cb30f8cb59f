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

class OddBlocks : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, OddBlocks,
                         testing::ValuesIn(targets({GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP})),
                         target_name);

// Blocks that no shift finds, of whole vectors and of parts of them, in several tiles and in rows with padding.
TEST_P(OddBlocks, AreFollowed) {
  Random random = test_random();
  for (const std::int64_t block : {3, 5, 6, 7, 12, 24, 40, 48, 56, 96, 1000}) {
    for (const std::int64_t blocks : {2, 13}) {
      for (const std::int64_t padding : {0, 16}) {
        Spec s = spec(GetParam().op == GATEFOLD_OP_MLP ? 3 : 37, 72, blocks * block);
        s.layout = random() % 2 == 0 ? Layout::interleaved_gate_up(block) : Layout::interleaved_up_gate(block);
        s.padding = {.gate = padding, .out = padding};
        expect_right(s, random);
      }
    }
  }
}

// Blocks of 32 rows, which most tiles' halves cut: these come in several boxes.
TEST_P(ProductsOfPairs, BlocksThatTilesCut) {
  Random random = test_random();
  Spec s = spec(225, 200, 1568);
  s.layout = Layout::interleaved_up_gate(32);
  expect_right_by_each(kernels_of(s, GetParam().implementation), s, random);
}

}  // namespace
}  // namespace gatefold::test
