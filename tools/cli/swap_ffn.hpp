#pragma once

#include "cli/options.hpp"

// The subcommands of swap-ffn.
namespace gatefold::cli {

Command add_swap_ffn_run(CLI::App& parent);
Command add_swap_ffn_init(CLI::App& parent);
Command add_swap_ffn_verify(CLI::App& parent);
Command add_swap_ffn_bench(CLI::App& parent);
Command add_swap_ffn_trace(CLI::App& parent);

}  // namespace gatefold::cli
