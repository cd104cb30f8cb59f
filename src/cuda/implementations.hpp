#pragma once

#include "core/implementation.hpp"

// The CUDA implementations, for the lists of src/dispatch.
namespace gatefold::cuda {

const Implementation* vector_act_and_mul();

// gemm and gate_up, for few tokens.
const Implementation* decode_products();
// The same on compute capability 9.0.
const Implementation* sm90_decode_products();

// gemm, gemm_gated and gate_up.
const Implementation* sm90_products();

// The same as sm90's.
const Implementation* sm80_products();
// gate_up with the weight rows alternating one by one: the published scheme, to compare with.
const Implementation* sm80_even_odd_gate_up();

// The last of each list: plain kernels that take everything.
const Implementation* simt_act_and_mul();
const Implementation* simt_gemm();
const Implementation* simt_gemm_gated();
const Implementation* simt_gate_up();

}  // namespace gatefold::cuda
