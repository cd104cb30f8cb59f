#pragma once

#include "cli/backend.hpp"

// The plain passes on the CPU: threaded, and vectorised by the compiler.
namespace gatefold::cli::elementwise {

void activate(const ElementwisePass& pass);
void multiply(const ElementwisePass& pass);
void copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace gatefold::cli::elementwise
