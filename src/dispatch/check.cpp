#include "dispatch/check.hpp"

#include "cpu/check.hpp"

namespace gatefold {

// The truth is the CPU's reference, whichever device the output comes from.
gatefold_error_report check(const Problem& problem, const Operands& operands, bool zero_mean, double* truth) {
  return cpu::check(problem, operands, zero_mean, truth);
}

}  // namespace gatefold
