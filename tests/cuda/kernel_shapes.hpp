#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/experiment.hpp"

namespace gatefold::test {

// What the plan says of the kernel that an implementation will launch.
std::string kernel_of(const Spec& spec, const std::string& implementation);

// For each kernel that an implementation takes for some shape of kernel_grid(), by its description: the shapes, those
// with the fewest outputs first. The first has a few tiles, the last several for each multiprocessor. Kernels are
// found, not listed: a new tile is tested without a word here. Costly shapes come in the thorough mode alone. Empty
// where the implementation supports none of the shapes.
std::map<std::string, std::vector<Spec>> shapes_by_kernel(
    const std::function<Spec(std::int64_t T, std::int64_t D, std::int64_t F)>& spec_of,
    const std::string& implementation);

}  // namespace gatefold::test
