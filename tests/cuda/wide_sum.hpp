#pragma once

#include <vector>

namespace gatefold::test {

// On the device, by what a chain of MLPs takes 1/rms from (cuda/sm90/wide_sum.cuh): of each row 1 / sqrt(first + the
// sum of its terms). terms: [number, rows], a multiple of 16 for each row.
std::vector<float> wide_inverse_roots(const std::vector<double>& first, const std::vector<double>& terms);

}  // namespace gatefold::test
