#pragma once

#include "gatefold/gatefold.hpp"

// The public types, for tests that see the library's own types of the same name as well.
namespace gatefold::test {

using Layout = v0::Layout;
using Activation = v0::Activation;
using Biases = v0::Biases;

}  // namespace gatefold::test
