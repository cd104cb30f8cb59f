#pragma once

#include <string>

#include "cli/way.hpp"

// Fused kernels of others, and of other builds of this library, loaded at run time.
namespace gatefold::cli {

// NAME=FILE, as --peer takes it.
struct Peer {
  std::string name;
  std::string file;
};

Peer peer_of(const std::string& text);  // throws checkpoint::InputError

// The file is a shared library as gatefold_peer.h describes it, which computes gate_up of silu alone, or another build
// of libgatefold. The provider's name is peer-NAME; it computes gate_up. Throws checkpoint::InputError.
Provider load(const Peer& peer);

bool is_peer(const std::string& provider);

}  // namespace gatefold::cli
