#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

namespace gatefold {

// The structs as their callers know them (struct_size.hpp). Nothing of a struct but its size is looked at.
Status read(const gatefold_desc& given, gatefold_desc& known);
Status read(const gatefold_args& given, gatefold_args& known);

// Checks a description and fills in the problem it stands for. Its implementation name is not looked at.
Status validate(const gatefold_desc& desc, Problem& problem);

// Checks one run's arguments against a validated problem: pointers, alignment, overflow, overlap. The workspace is
// checked by the plan, which knows what it needs.
Status validate(const Problem& problem, const gatefold_args& args, Operands& operands);

// Is there nothing to write?
bool empty_output(const Problem& problem, std::int64_t tokens);

}  // namespace gatefold
