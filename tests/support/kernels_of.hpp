#pragma once

#include <string>
#include <vector>

#include "support/experiment.hpp"

namespace gatefold::test {

// What to force so that each kernel of an implementation is taken once: "sm90:256x192 cluster 1x2", ..., or the
// implementation alone if it has but one or can't take the description.
std::vector<std::string> kernels_of(const Spec& spec, const std::string& implementation);

}  // namespace gatefold::test
