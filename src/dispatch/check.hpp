#pragma once

#include "core/problem.hpp"

namespace gatefold {

// gatefold_check on validated arguments, whose pointers are to host memory. Any op but mlp. truth may be null.
gatefold_error_report check(const Problem& problem, const Operands& operands, bool zero_mean, double* truth);

}  // namespace gatefold
