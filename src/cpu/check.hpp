#pragma once

#include "core/problem.hpp"
#include "cpu/truth.hpp"

namespace gatefold::cpu {

// gatefold_check on validated arguments. Any op but mlp. truth may be null.
gatefold_error_report check(const Problem& problem, const Operands& operands, bool zero_mean, double* truth);

// The bound that gatefold_check holds one element of an op against, and |out - truth| / bound; infinity where a NaN or
// an infinity is not the truth's.
double element_bound(const Problem& problem, bool zero_mean, const Tile::Entry& entry);
double bound_ratio(double out, double truth, double bound, DType dtype);

// The error of a sum of `depth` products, relative to the sum of their magnitudes, and of a value's last rounding.
double sum_error(DType dtype, std::int64_t depth, bool zero_mean);
double rounding_error(DType dtype);

}  // namespace gatefold::cpu
