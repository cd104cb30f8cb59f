#pragma once

#include "core/implementation.hpp"

// The CPU's implementations, for the lists of src/dispatch.
namespace gatefold::cpu {

#if GATEFOLD_WITH_ONEDNN
const Implementation* onednn_act_and_mul();
const Implementation* onednn_gemm();
const Implementation* onednn_gemm_gated();
const Implementation* onednn_gate_up();
#endif

const Implementation* reference();  // every op but mlp
const Implementation* reference_mlp();

}  // namespace gatefold::cpu
