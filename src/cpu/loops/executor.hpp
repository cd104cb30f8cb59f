#pragma once

#include <cstdint>
#include <memory>

#include "core/implementation.hpp"
#include "cpu/cpu_info.hpp"
#include "cpu/loops/kernel.hpp"

namespace gatefold::cpu {

// The most tokens of a run: more than any machine holds.
std::int64_t token_limit(const Problem& problem);

// gemm, gemm_gated and gate_up by one kernel, for any number of tokens, on a machine with such caches.
std::unique_ptr<Executor> make_executor(const Problem& problem, const Kernel& kernel,
                                        const Caches& caches = core_caches());

}  // namespace gatefold::cpu
