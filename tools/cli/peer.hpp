#pragma once

#include <string>

#include "cli/way.hpp"

// Fused kernels of others, and of other builds of this library, loaded at run time.
namespace gatefold::cli {

// `peer` is NAME=FILE, FILE a shared library as gatefold_peer.h describes it, which computes gate_up of silu alone, or
// another build of libgatefold. The provider's name is peer-NAME; it computes gate_up. Throws checkpoint::InputError.
Provider load_peer(const std::string& peer);

bool is_peer(const std::string& provider);

}  // namespace gatefold::cli
