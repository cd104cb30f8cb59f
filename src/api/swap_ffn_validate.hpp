#pragma once

#include "core/status.hpp"
#include "swap_ffn/check.hpp"
#include "swap_ffn/config.hpp"
#include "swap_ffn/reference.hpp"
#include "swap_ffn/step.hpp"

namespace gatefold {

Status validate(const gatefold_swap_ffn_desc& desc, swap_ffn::Config& config);
Status validate(const swap_ffn::Config& config, const gatefold_swap_ffn_weights& weights, swap_ffn::Weights& pointers);

// The workspace and the prepared buffer are checked by the plan, which knows what it needs.
Status validate(const swap_ffn::Config& config, const gatefold_swap_ffn_args& args, swap_ffn::StepOperands& operands);
Status validate(const swap_ffn::Config& config, const gatefold_swap_ffn_reference_args& args,
                swap_ffn::ReferenceOperands& operands);
Status validate(const swap_ffn::Config& config, const gatefold_swap_ffn_check_args& args,
                swap_ffn::CheckOperands& operands);

Status check_stream_map(const std::uint8_t* map, std::int64_t count);
Status check_batch(const swap_ffn::Config& config, const char* name, std::int64_t batch);

}  // namespace gatefold
