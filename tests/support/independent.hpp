#pragma once

#include <vector>

#include "support/experiment.hpp"

// A second, plain computation of every op, its bound included, in long double: it shares nothing with the library, so
// that gatefold_check itself can be checked.
namespace gatefold::test {

struct Bounded {
  double value;
  double bound;
};

long double activate(const Activation& activation, long double gate);

// [tokens, columns] of the experiment's op, mlp included. For mlp the bound allows h a rounding to the element type:
// an error of h passes through |w_down| and is added up.
std::vector<Bounded> independent_truth(const Experiment& experiment, gatefold_data data);

}  // namespace gatefold::test
