#pragma once

#include <cstdint>
#include <vector>

#include "swap_ffn/experiment.hpp"

namespace gatefold::test {

// The step as docs/swap_ffn.md defines it, written out in plain loops over doubles. Nothing is shared with the library.
class IndependentStep {
 public:
  IndependentStep(const SwapFfnExperiment& experiment, std::int64_t batch);
  void step(const SwapFfnExperiment& experiment);  // with its x and weights

  std::vector<double> ram, s, delta;
  std::vector<std::uint8_t> map, decisions;

 private:
  void route(const SwapFfnExperiment& e, std::int64_t event, std::int64_t row);
  void mlp(const SwapFfnExperiment& e, std::int64_t row);
  void collapse(const SwapFfnExperiment& e);
  std::vector<double> normalised(const SwapFfnExperiment& e, std::int64_t row, const char* norm) const;
  std::int64_t batch_;
};

// gatefold_swap_ffn_reference with its state.
class LibraryReference {
 public:
  LibraryReference(const SwapFfnExperiment& experiment, std::int64_t batch);
  void step(const SwapFfnExperiment& experiment);

  std::vector<double> ram, cores, delta;
  std::vector<std::uint8_t> map, decisions;

 private:
  std::int64_t batch_;
};

// Two results of double precision: 2^-30 of the largest is far more than sums of some thousand terms can differ.
void expect_near(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace gatefold::test
