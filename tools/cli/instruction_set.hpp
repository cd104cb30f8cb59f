#pragma once

#include <cstdint>
#include <string>

#include "gatefold/gatefold.hpp"

namespace gatefold::cli {

// The instruction set that computes the products of an op on the CPU, as the library's kernels are named; or the
// implementation's name, where it has no kernels. "" of act_and_mul, which has no products.
std::string instruction_set_of(const Desc& desc, const Plan& plan, std::int64_t tokens);

}  // namespace gatefold::cli
