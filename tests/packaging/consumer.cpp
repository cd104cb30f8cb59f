// The whole block in C++, by whichever implementation Gatefold chooses. All numbers are small integers, so the result
// is exact.
#include <array>
#include <cstdio>
#include <gatefold/gatefold.hpp>

int main() try {
  const std::array<float, 3> x{1, 2, 3};
  const std::array<float, 12> w_gate_up{1, 1, 1, 2, 0, 0, /* up: */ 1, 0, 1, 0, 0, 5};
  const std::array<float, 6> w_down{1, 0, 0, 1, 1, -1};
  const std::array<float, 3> expected{24, 30, -6};  // h = 6 * 4, 2 * 15
  std::array<float, 3> y{-1, -1, -1};

  const gatefold::Plan plan({.op = GATEFOLD_OP_MLP,
                             .dtype = GATEFOLD_DTYPE_FP32,
                             .device = GATEFOLD_DEVICE_CPU,
                             .layout = gatefold::Layout::gate_up(),
                             .activation = gatefold::Activation::identity(),
                             .hidden_size = 3,
                             .intermediate_size = 2});
  const gatefold::Workspace workspace(plan.workspace_size(1));
  plan.run({.tokens = 1,
            .x = x.data(),
            .gate = w_gate_up.data(),
            .down = w_down.data(),
            .out = y.data(),
            .workspace = workspace});
  if (y != expected) {
    std::fprintf(stderr, "y = %g %g %g, expected %g %g %g\n", y[0], y[1], y[2], expected[0], expected[1], expected[2]);
    return 1;
  }
  return 0;
} catch (const gatefold::Error& error) {
  std::fprintf(stderr, "gatefold %s: %s\n", gatefold_version(), error.what());
  return 1;
}
