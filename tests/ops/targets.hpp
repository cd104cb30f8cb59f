#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "support/experiment.hpp"
#include "support/names.hpp"

namespace gatefold::test {

// One implementation of one op on this program's device, with one element type.
struct Target {
  gatefold_op op;
  std::string implementation;
  gatefold_dtype dtype;
};
void PrintTo(const Target& target, std::ostream* out);  // GoogleTest's name for it

// Every implementation that the library lists, with every element type.
std::vector<Target> targets(const std::vector<gatefold_op>& ops);
inline std::vector<Target> all_targets() {
  return targets(
      {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP, GATEFOLD_OP_MLP});
}
std::string target_name(const testing::TestParamInfo<Target>& info);

// Those products whose special values follow the table of docs/numerics.md: all but sm80's of fp32, which multiply two
// parts of each number, of which an infinite one's are not.
std::vector<Target> products_of_special_values();

// No element further from the truth than its bound; mlp, which gatefold_check doesn't take at once, by our own. False
// where one is.
bool expect_within_bounds(Experiment& experiment, gatefold_data data);
// What is known of a spec's values.
inline gatefold_data data_of(const Spec& spec) {
  return spec.values == Values::zero_mean ? GATEFOLD_DATA_ZERO_MEAN : GATEFOLD_DATA_ANY;
}

class TargetTest : public testing::TestWithParam<Target> {
 protected:
  Spec spec(std::int64_t tokens, std::int64_t hidden_size, std::int64_t intermediate_size) const {
    return {.op = GetParam().op,
            .dtype = GetParam().dtype,
            .activation = Activation::silu(),
            .tokens = tokens,
            .hidden_size = hidden_size,
            .intermediate_size = intermediate_size};
  }

  // Fresh data, run, checked against the truth in double precision: no element outside its bound.
  void expect_right(const Spec& spec, Random& random) { expect_right_by(GetParam().implementation, spec, random); }
  // By one of the implementation's kernels.
  void expect_right_by(const std::string& implementation, const Spec& spec, Random& random);
  // By each of several, on the same fresh data. Many of them form the same sums in the same order: an output of the
  // same bits as one that was found right is not held to the truth again, which takes most of such a test's time.
  void expect_right_by_each(const std::vector<std::string>& kernels, const Spec& spec, Random& random);
  // The same, and every element is the correctly rounded one. For integers.
  void expect_exact(const Spec& spec, Random& random);

  // A test whose every description was turned down has shown nothing: it says so.
  void TearDown() override {
    if (tried_ > 0 && ran_ == 0 && !HasFailure())
      GTEST_SKIP() << GetParam().implementation << " takes none of these descriptions";
  }

 private:
  int tried_ = 0;
  int ran_ = 0;
};

// The layouts of an op, for F lines of one half; one, which is not looked at, for an op without any.
inline std::vector<Layout> layouts_of(gatefold_op op, std::int64_t lines) {
  return uses_layout(op) ? layouts_for(lines) : std::vector<Layout>{Layout::separate()};
}
inline std::vector<Activation> activations_of(gatefold_op op) {
  if (!uses_activation(op)) return {Activation::identity()};
  return {all_activations.begin(), all_activations.end()};
}

}  // namespace gatefold::test
