#pragma once

#include <cstdint>
#include <memory>

#include "core/implementation.hpp"
#include "cpu/loops/kernel.hpp"

namespace gatefold::cpu {

// The most tokens of a run: more than any machine holds.
std::int64_t token_limit(const Problem& problem);

// gemm, gemm_gated and gate_up by one kernel, for any number of tokens.
std::unique_ptr<Executor> make_executor(const Problem& problem, const Kernel& kernel);

}  // namespace gatefold::cpu
