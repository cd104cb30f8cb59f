// gate_up of one token in C. All numbers are small integers, so the result is exact.
#include <gatefold/gatefold.h>
#include <stdio.h>

int main(void) {
  const float x[3] = {1, 2, 3};
  const float w_gate[6] = {1, 1, 1, 2, 0, 0};
  const float w_up[6] = {1, 0, 1, 0, 0, 5};
  const float expected[2] = {6 * 4, 2 * 15};
  float h[2] = {-1, -1};

  gatefold_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.op = GATEFOLD_OP_GATE_UP;
  desc.dtype = GATEFOLD_DTYPE_FP32;
  desc.device = GATEFOLD_DEVICE_CPU;
  desc.layout = GATEFOLD_LAYOUT_SEPARATE;
  desc.activation = GATEFOLD_ACTIVATION_IDENTITY;
  desc.hidden_size = 3;
  desc.intermediate_size = 2;
  desc.implementation = "reference";  // needs no workspace

  gatefold_args args = {0};
  args.struct_size = sizeof args;
  args.tokens = 1;
  args.x = x;
  args.gate = w_gate;
  args.up = w_up;
  args.out = h;

  gatefold_plan* plan = NULL;
  if (gatefold_plan_create(&desc, &plan) != GATEFOLD_SUCCESS || gatefold_run(plan, &args) != GATEFOLD_SUCCESS) {
    fprintf(stderr, "gatefold %s: %s\n", gatefold_version(), gatefold_last_error());
    return 1;
  }
  gatefold_plan_destroy(plan);
  if (h[0] != expected[0] || h[1] != expected[1]) {
    fprintf(stderr, "h = %g %g, expected %g %g\n", h[0], h[1], expected[0], expected[1]);
    return 1;
  }
  return 0;
}
