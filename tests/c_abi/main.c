// The whole interface from C11: gate_up with every layout kind against sums written out here, and the failures that
// only a C caller can produce.
#include <gatefold/gatefold.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = 5, D = 7, F = 6, BLOCK = 2 };

static float x[T][D], w_gate[F][D], w_up[F][D], packed[2 * F][D], h[T][F];
static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "c_abi: %s (last error: \"%s\")\n", what, gatefold_last_error());
  ++failures;
}

static void fill(float* values, int count, int step) {
  for (int i = 0; i < count; ++i) values[i] = (float)((i * step) % 13 - 6) / 8.0F;
}

static double dot(const float* a, const float* b) {
  double sum = 0.0;
  for (int k = 0; k < D; ++k) sum += (double)a[k] * (double)b[k];
  return sum;
}

static int right(int t, int f) {
  const double gate = dot(x[t], w_gate[f]);
  const double expected = gate / (1.0 + exp(-gate)) * dot(x[t], w_up[f]);
  return fabs((double)h[t][f] - expected) <= 1e-5 * (1.0 + fabs(expected));
}

static gatefold_desc description(gatefold_layout layout) {
  gatefold_desc desc = {0};
  desc.struct_size = sizeof desc;
  desc.op = GATEFOLD_OP_GATE_UP;
  desc.dtype = GATEFOLD_DTYPE_FP32;
  desc.device = GATEFOLD_DEVICE_CPU;
  desc.layout = layout;
  desc.block = layout >= GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP ? BLOCK : 0;
  desc.activation = GATEFOLD_ACTIVATION_SILU;
  desc.hidden_size = D;
  desc.intermediate_size = F;
  return desc;
}

// Row f of a half, in the packed tensor.
static int packed_row(gatefold_layout layout, int f, int is_up) {
  switch (layout) {
    case GATEFOLD_LAYOUT_GATE_UP: return is_up ? F + f : f;
    case GATEFOLD_LAYOUT_UP_GATE: return is_up ? f : F + f;
    case GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP: return f / BLOCK * 2 * BLOCK + f % BLOCK + (is_up ? BLOCK : 0);
    case GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE: return f / BLOCK * 2 * BLOCK + f % BLOCK + (is_up ? 0 : BLOCK);
    case GATEFOLD_LAYOUT_SEPARATE: break;
  }
  return f;
}

static gatefold_args arguments(gatefold_layout layout) {
  for (int f = 0; f < F && layout != GATEFOLD_LAYOUT_SEPARATE; ++f) {
    memcpy(packed[packed_row(layout, f, 0)], w_gate[f], sizeof w_gate[f]);
    memcpy(packed[packed_row(layout, f, 1)], w_up[f], sizeof w_up[f]);
  }
  gatefold_args args = {0};
  args.struct_size = sizeof args;
  args.tokens = T;
  args.x = x;
  args.gate = layout == GATEFOLD_LAYOUT_SEPARATE ? (const void*)w_gate : (const void*)packed;
  args.up = layout == GATEFOLD_LAYOUT_SEPARATE ? w_up : NULL;
  args.out = h;
  return args;
}

static void test_layout(gatefold_layout layout) {
  static unsigned char memory[(1 << 20) + 256];
  const gatefold_desc desc = description(layout);
  gatefold_args args = arguments(layout);
  gatefold_plan* plan = NULL;
  expect(gatefold_plan_create(&desc, &plan) == GATEFOLD_SUCCESS, "no plan was made");
  if (plan == NULL) return;
  expect(gatefold_plan_workspace_size(plan, T, &args.workspace_size) == GATEFOLD_SUCCESS, "no workspace size");
  expect(args.workspace_size <= sizeof memory - 256, "so small a product needs more than 1 MiB of workspace");
  args.workspace = memory + (256 - (uintptr_t)memory % 256) % 256;

  memset(h, 0xff, sizeof h);  // NaN
  expect(gatefold_run(plan, &args) == GATEFOLD_SUCCESS, "the run failed");
  for (int t = 0; t < T; ++t) {
    for (int f = 0; f < F; ++f) expect(right(t, f), "a wrong number");
  }
  gatefold_error_report report;
  expect(gatefold_check(&desc, &args, GATEFOLD_DATA_ANY, &report, NULL) == GATEFOLD_SUCCESS, "the check failed");
  expect(report.violations == 0, "the check found violations");
  gatefold_plan_destroy(plan);
}

// Any int fits into a C enum.
static void test_values_that_no_enum_has(void) {
  gatefold_plan* plan = NULL;
  gatefold_desc desc = description(GATEFOLD_LAYOUT_SEPARATE);
  desc.op = (gatefold_op)12345;
  expect(gatefold_plan_create(&desc, &plan) == GATEFOLD_ERROR_INVALID_ARGUMENT, "op 12345 was accepted");
  expect(strstr(gatefold_last_error(), "12345") != NULL, "the message doesn't name op 12345");
  expect(plan == NULL, "a plan was made of op 12345");
  expect(gatefold_implementation_name((gatefold_op)257, GATEFOLD_DEVICE_CPU, 0) == NULL, "op 257 has implementations");
  expect(gatefold_implementation_name(GATEFOLD_OP_GEMM, (gatefold_device)257, 0) == NULL, "device 257 has some");
  const char* why = NULL;
  expect(gatefold_device_count((gatefold_device)257, &why) == 0 && strstr(why, "257") != NULL, "device 257 counts");
  gatefold_device_info info;
  expect(gatefold_device_query((gatefold_device)257, 0, &info) == GATEFOLD_ERROR_INVALID_ARGUMENT, "device 257 is");
}

int main(void) {
  fill(&x[0][0], T * D, 5);
  fill(&w_gate[0][0], F * D, 7);
  fill(&w_up[0][0], F * D, 11);
  for (int layout = GATEFOLD_LAYOUT_SEPARATE; layout <= GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE; ++layout) {
    test_layout((gatefold_layout)layout);
  }
  test_values_that_no_enum_has();
  gatefold_plan_destroy(NULL);
  if (failures == 0) printf("c_abi: gatefold %s computes gate_up from C\n", gatefold_version());
  return failures == 0 ? 0 : 1;
}
