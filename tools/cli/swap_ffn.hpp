#pragma once

#include "cli/options.hpp"

// The subcommands of swap-ffn.
namespace gatefold::cli {

Command add_swap_ffn_run(const App& parent);
Command add_swap_ffn_init(const App& parent);
Command add_swap_ffn_verify(const App& parent);
Command add_swap_ffn_bench(const App& parent);
Command add_swap_ffn_trace(const App& parent);

}  // namespace gatefold::cli
