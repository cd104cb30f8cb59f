#include "cuda/common/launch.hpp"

#include <gtest/gtest.h>

namespace gatefold::cuda {
namespace {

// What a device says of a kernel: the architecture whose machine code it runs, and the virtual one that this was
// compiled from, which decides what is in it.
cudaFuncAttributes code(int virtual_architecture, int machine) {
  cudaFuncAttributes attributes{};
  attributes.ptxVersion = virtual_architecture;
  attributes.binaryVersion = machine;
  return attributes;
}

TEST(EarlyLaunch, IsForCodeThatWaits) {
  EXPECT_TRUE(waits_for_previous_grid(code(90, 90)));
  EXPECT_TRUE(waits_for_previous_grid(code(90, 100)));
  EXPECT_TRUE(waits_for_previous_grid(code(120, 120)));
  EXPECT_FALSE(waits_for_previous_grid(code(80, 80)));
  EXPECT_FALSE(waits_for_previous_grid(code(86, 86)));
  EXPECT_FALSE(waits_for_previous_grid(code(80, 90)));  // a build for 80;86, translated for a 9.0
}

}  // namespace
}  // namespace gatefold::cuda
