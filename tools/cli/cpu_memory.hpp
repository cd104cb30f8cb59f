#pragma once

#include <cstddef>

namespace gatefold::cli {

// Of all caches of the highest level together.
std::size_t last_level_cache_bytes();

// What the process may still take without swapping: as the system says, and the limits of its control groups.
std::size_t available_memory_bytes();

}  // namespace gatefold::cli
