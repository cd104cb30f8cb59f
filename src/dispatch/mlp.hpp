#pragma once

#include "core/implementation.hpp"

namespace gatefold {

// mlp as gate_up into the workspace, then gemm with w_down: on any device, whatever implementations those two take.
const Implementation* composed_mlp();

}  // namespace gatefold
