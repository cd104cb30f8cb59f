#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gatefold/gatefold.h"

namespace gatefold::test {

// A description and arguments that are right, for a test to spoil one thing of. Elements are fp32.
struct ValidCall {
  explicit ValidCall(gatefold_op op, gatefold_layout layout = GATEFOLD_LAYOUT_SEPARATE);

  static constexpr std::int64_t tokens = 3;
  static constexpr std::int64_t hidden_size = 8;
  static constexpr std::int64_t intermediate_size = 12;

  gatefold_desc desc{};
  gatefold_args args{};
  std::vector<float> x, gate, up, down, out;
  std::vector<std::byte> workspace;  // expect_runs makes it as large as the plan wants
};

// The description must be refused with this status and a line that holds every one of the parts; no plan is made.
void expect_refused(const gatefold_desc& desc, const std::vector<std::string>& parts,
                    gatefold_status status = GATEFOLD_ERROR_INVALID_ARGUMENT);

// The run must be refused likewise, and the output left as it was.
void expect_run_refused(ValidCall& call, const std::vector<std::string>& parts,
                        gatefold_status status = GATEFOLD_ERROR_INVALID_ARGUMENT);

// The call as it is must succeed: a test that spoils one thing has nothing else to fail for.
void expect_runs(ValidCall& call);

}  // namespace gatefold::test
