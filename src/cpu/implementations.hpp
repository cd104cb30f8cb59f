#pragma once

#include "core/implementation.hpp"

// The CPU's implementations, for the lists of src/dispatch.
namespace gatefold::cpu {

const Implementation* vector_act_and_mul();
const Implementation* loops();      // gemm, gemm_gated and gate_up
const Implementation* reference();  // every op but mlp
const Implementation* reference_mlp();

}  // namespace gatefold::cpu
