#pragma once

#include "core/problem.hpp"
#include "dispatch/selection.hpp"

struct gatefold_plan {
  gatefold::Problem problem;
  gatefold::Selection selection;
};
