// The whole interface from C11, on a configuration so small that the result is known: one of everything.
#include <gatefold/swap_ffn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "swap_ffn_c_abi: %s (last error: \"%s\")\n", what, gatefold_last_error());
  ++failures;
}

static void* aligned(unsigned char* memory) { return memory + (256 - (uintptr_t)memory % 256) % 256; }

int main(void) {
  gatefold_swap_ffn_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.dtype = GATEFOLD_DTYPE_FP32;
  desc.device = GATEFOLD_DEVICE_CPU;
  desc.hidden_size = desc.intermediate_size = desc.cores = desc.core_embed_size = desc.router_width = 1;
  desc.collapse_heads = desc.collapse_width = desc.events = desc.k_ffn = 1;
  desc.eps = 1e-6;

  const float one = 1.0F, zero = 0.0F, ones[4] = {1.0F, 1.0F, 1.0F, 2.0F};
  gatefold_swap_ffn_weights weights = {0};
  weights.struct_size = sizeof weights;
  weights.core_embed = weights.router_norm = weights.router_w = weights.router_swap_w = weights.ffn_norm = &one;
  weights.gate_w = weights.up_w = weights.down_w = weights.basis = weights.decoder = &one;
  weights.scale_w = weights.scale_b = weights.shift_w = weights.shift_b = &zero;
  weights.alpha_w = weights.alpha_b = weights.router_swap_b = &zero;
  weights.bank_w = ones;
  weights.bank_b = ones;

  static unsigned char memory[2][(1 << 20) + 256];
  gatefold_swap_ffn_plan* plan = NULL;
  size_t prepared_size = 0;
  float x = 2.0F, ram[4] = {10.0F, 20.0F, 30.0F, -40.0F}, delta = -1.0F;
  uint8_t map = GATEFOLD_SWAP_FFN_INITIAL_MAP;
  gatefold_swap_ffn_args args = {0};
  args.struct_size = sizeof args;
  args.batch = 1;
  args.prepared = aligned(memory[0]);
  args.x = &x;
  args.ram = ram;
  args.stream_map = &map;
  args.delta = &delta;
  args.workspace = aligned(memory[1]);

  expect(gatefold_swap_ffn_plan_create(&desc, &plan) == GATEFOLD_SUCCESS, "no plan was made");
  if (plan == NULL) return 1;
  expect(gatefold_swap_ffn_prepared_size(plan, &prepared_size) == GATEFOLD_SUCCESS, "no prepared size");
  expect(gatefold_swap_ffn_workspace_size(plan, 1, &args.workspace_size) == GATEFOLD_SUCCESS, "no workspace size");
  expect(prepared_size <= 1 << 20 && args.workspace_size <= 1 << 20, "so small a step needs more than 1 MiB");
  expect(gatefold_swap_ffn_prepare(plan, &weights, memory[0], 0, NULL) == GATEFOLD_ERROR_INVALID_ARGUMENT,
         "a buffer of no bytes was accepted");
  expect(gatefold_swap_ffn_prepare(plan, &weights, aligned(memory[0]), prepared_size, NULL) == GATEFOLD_SUCCESS,
         "the weights were not prepared");
  expect(gatefold_swap_ffn_step(plan, &args) == GATEFOLD_SUCCESS, "the step failed");

  // s = 2, z = 1: it swaps with the last bank. rms(-40) = -1, so s = silu(-1) * -1.
  const double s = -1.0 / (1.0 + exp(1.0)) * -1.0;
  const double expected = s / (1.0 + exp(-s));
  expect(ram[3] == 2.0F && ram[0] == 10.0F, "the banks are not what the swap makes of them");
  expect(map == 0x27, "the map is not what the swap makes of it");
  expect(fabs((double)delta - expected) < 1e-6, "delta is wrong");

  map = 0;
  expect(gatefold_swap_ffn_step(plan, &args) == GATEFOLD_ERROR_INVALID_ARGUMENT, "a map of zeros was accepted");
  gatefold_swap_ffn_plan_destroy(plan);
  if (failures == 0) printf("swap_ffn_c_abi: the step computes from C\n");
  return failures == 0 ? 0 : 1;
}
