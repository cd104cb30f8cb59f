#pragma once

#include "core/implementation.hpp"

// The CUDA implementations, for the lists of src/dispatch.
namespace gatefold::cuda {

const Implementation* vector_act_and_mul();

// gemm and gate_up.
const Implementation* sm90_products();

// The last of each list: plain kernels that take everything.
const Implementation* simt_act_and_mul();
const Implementation* simt_gemm();
const Implementation* simt_gemm_gated();
const Implementation* simt_gate_up();

}  // namespace gatefold::cuda
