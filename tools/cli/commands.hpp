#pragma once

#include "cli/options.hpp"

// The subcommands, one file each.
namespace gatefold::cli {

Command add_info(CLI::App& root);
Command add_run(CLI::App& root);
Command add_verify(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_explain(CLI::App& root);
Command add_memory(CLI::App& root);
Command add_checkpoint(CLI::App& root);
Command add_swap_ffn(CLI::App& root);

}  // namespace gatefold::cli
