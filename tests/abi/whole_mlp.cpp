#include <cmath>
#include <cstdio>
#include <gatefold/gatefold.hpp>
#include <vector>

// A whole MLP through the C++ interface of an earlier version: by the library's choice and by the reference, against
// sums written out here; gate_up is checked, too, and a failure becomes an exception.
namespace {

constexpr std::int64_t T = 5;
constexpr std::int64_t D = 24;
constexpr std::int64_t F = 40;

std::vector<float> values(std::int64_t count, int step) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) result[i] = static_cast<float>(i * step % 13 - 6) / 8.0F;
  return result;
}

double dot(const float* a, const float* b, std::int64_t length) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < length; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

struct Tensors {
  std::vector<float> x = values(T * D, 5);
  std::vector<float> w_gate = values(F * D, 7);
  std::vector<float> w_up = values(F * D, 11);
  std::vector<float> w_down = values(D * F, 3);

  double y(std::int64_t t, std::int64_t d) const {
    double sum = 0.0;
    for (std::int64_t f = 0; f < F; ++f) {
      const double gate = dot(x.data() + t * D, w_gate.data() + f * D, D);
      const double h = gate / (1.0 + std::exp(-gate)) * dot(x.data() + t * D, w_up.data() + f * D, D);
      sum += h * static_cast<double>(w_down[d * F + f]);
    }
    return sum;
  }
};

gatefold::Desc describe(gatefold_op op, const char* implementation) {
  return {.op = op,
          .dtype = GATEFOLD_DTYPE_FP32,
          .device = GATEFOLD_DEVICE_CPU,
          .layout = gatefold::Layout::separate(),
          .activation = gatefold::Activation::silu(),
          .hidden_size = D,
          .intermediate_size = F,
          .implementation = implementation};
}

int failures = 0;
void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "abi: %s\n", what);
  ++failures;
}

void test_mlp(const char* implementation) {
  const Tensors tensors;
  const gatefold::Plan plan(describe(GATEFOLD_OP_MLP, implementation));
  const gatefold::Workspace workspace(plan.workspace_size(T));
  std::vector<float> y(T * D, NAN);
  plan.run({.tokens = T,
            .x = tensors.x.data(),
            .gate = tensors.w_gate.data(),
            .up = tensors.w_up.data(),
            .down = tensors.w_down.data(),
            .out = y.data(),
            .workspace = workspace});
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t d = 0; d < D; ++d) {
      const double truth = tensors.y(t, d);
      expect(std::fabs(static_cast<double>(y[t * D + d]) - truth) <= 1e-4 * (1.0 + std::fabs(truth)), "a wrong number");
    }
  }
}

void test_gate_up_and_check() {
  const Tensors tensors;
  const gatefold::Desc desc = describe(GATEFOLD_OP_GATE_UP, "");
  const gatefold::Plan plan(desc);
  const gatefold::Workspace workspace(plan.workspace_size(T));
  std::vector<float> h(T * F, NAN);
  gatefold::Args args{.tokens = T,
                      .x = tensors.x.data(),
                      .gate = tensors.w_gate.data(),
                      .up = tensors.w_up.data(),
                      .out = h.data(),
                      .workspace = workspace};
  plan.run(args);
  expect(gatefold::check(desc, args, GATEFOLD_DATA_ANY).violations == 0, "gate_up is beyond its bound");
  args.x = nullptr;
  try {
    plan.run(args);
    expect(false, "a run without x succeeded");
  } catch (const gatefold::Error& error) {
    expect(error.status() == GATEFOLD_ERROR_INVALID_ARGUMENT, "a run without x has another status");
  }
}

}  // namespace

int main() {
  test_mlp("");
  test_mlp("reference");
  test_gate_up_and_check();
  return failures == 0 ? 0 : 1;
}
