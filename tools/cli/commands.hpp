#pragma once

#include "cli/options.hpp"

// The subcommands, one file each.
namespace gatefold::cli {

Command add_info(const App& root);
Command add_run(const App& root);
Command add_verify(const App& root);
Command add_bench(const App& root);
Command add_explain(const App& root);
Command add_memory(const App& root);
Command add_checkpoint(const App& root);
Command add_swap_ffn(const App& root);

}  // namespace gatefold::cli
