#include "ops/targets.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "support/independent.hpp"
#include "support/kernels_of.hpp"

namespace gatefold::test {
namespace {

// On the CPU each kernel counts as an implementation: one for each instruction set. A GPU's have tests of their own.
std::vector<std::string> forced_names(gatefold_op op, const std::string& implementation, gatefold_dtype dtype) {
  if (device_memory().device() != GATEFOLD_DEVICE_CPU) return {implementation};
  if (op == GATEFOLD_OP_ACT_AND_MUL) return {implementation};
  return kernels_of({.op = op, .dtype = dtype, .tokens = 1, .hidden_size = 1, .intermediate_size = 1}, implementation);
}

}  // namespace

bool expect_within_bounds(Experiment& experiment, gatefold_data data) {
  if (experiment.spec().op != GATEFOLD_OP_MLP) {
    const gatefold_error_report report = experiment.check(data);
    EXPECT_EQ(report.violations, 0) << "worst at row " << report.worst_row << " column " << report.worst_column << ": "
                                    << report.max_bound_ratio << " x its bound";
    return report.violations == 0;
  }
  const std::vector<Bounded> truth = independent_truth(experiment, data);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(truth.size()); ++i) {
    const std::int64_t t = i / experiment.columns();
    const std::int64_t c = i % experiment.columns();
    const double error = std::abs(experiment.out(t, c) - truth[i].value);
    if (error <= truth[i].bound) continue;  // a NaN is not
    ADD_FAILURE() << "row " << t << " column " << c << ": " << experiment.out(t, c) << ", truth " << truth[i].value
                  << ", bound " << truth[i].bound;
    return false;
  }
  return true;
}

std::vector<Target> targets(const std::vector<gatefold_op>& ops) {
  std::vector<Target> result;
  for (const gatefold_op op : ops) {
    for (int i = 0; const char* implementation = gatefold_implementation_name(op, device_memory().device(), i); ++i) {
      for (const gatefold_dtype dtype : all_dtypes) {
        for (const std::string& name : forced_names(op, implementation, dtype)) result.push_back({op, name, dtype});
      }
    }
  }
  return result;
}

std::vector<Target> products_of_special_values() {
  std::vector<Target> result = targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP});
  std::erase_if(result, [](const Target& target) {
    return target.dtype == GATEFOLD_DTYPE_FP32 && target.implementation.starts_with("sm80");
  });
  return result;
}

void PrintTo(const Target& target, std::ostream* out) {
  *out << name(target.op) << " " << target.implementation << " " << name(target.dtype);
}

std::string target_name(const testing::TestParamInfo<Target>& info) {
  std::string text = name(info.param.op) + "_" + info.param.implementation + "_" + name(info.param.dtype);
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

void TargetTest::expect_right_by(const std::string& implementation, const Spec& spec, Random& random) {
  SCOPED_TRACE(implementation + ", " + describe(spec));
  Experiment experiment(spec, random);
  ++tried_;
  if (!experiment.run(implementation)) return;
  ++ran_;
  expect_within_bounds(experiment, data_of(spec));
}

void TargetTest::expect_right_by_each(const std::vector<std::string>& kernels, const Spec& spec, Random& random) {
  Experiment experiment(spec, random);
  std::vector<std::vector<std::byte>> right;
  for (const std::string& kernel : kernels) {
    SCOPED_TRACE(kernel + ", " + describe(spec));
    ++tried_;
    if (!experiment.run(kernel)) continue;
    ++ran_;
    std::vector<std::byte> out = experiment.out_bytes();
    if (std::ranges::find(right, out) != right.end()) continue;
    if (expect_within_bounds(experiment, data_of(spec))) right.push_back(std::move(out));
  }
}

void TargetTest::expect_exact(const Spec& spec, Random& random) {
  SCOPED_TRACE(describe(spec));
  Experiment experiment(spec, random);
  ++tried_;
  if (!experiment.run(GetParam().implementation)) return;
  ++ran_;
  const std::vector<Bounded> truth = independent_truth(experiment, GATEFOLD_DATA_ANY);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(truth.size()); ++i) {
    const std::int64_t t = i / experiment.columns();
    const std::int64_t c = i % experiment.columns();
    ASSERT_EQ(experiment.out(t, c), round_to(spec.dtype, truth[i].value))
        << "row " << t << " column " << c << ", exactly " << truth[i].value;
  }
}

}  // namespace gatefold::test
