// Plans, made once for each description and number of threads, and shared by threads.
#pragma once

#include <memory>
#include <string>

#include "gatefold/gatefold.h"

namespace gatefold_torch {

using Plan = std::shared_ptr<const gatefold_plan>;

// The plan of a description whose `implementation` is null; `implementation` names it here, "" lets Gatefold choose.
// The answer is this thread's until its next call. Throws std::runtime_error with the library's message.
const Plan& plan_for(const gatefold_desc& desc, const std::string& implementation);

// Throws std::runtime_error with the library's message unless the status is success.
void check(gatefold_status status);

}  // namespace gatefold_torch
