#pragma once

#include <cstddef>

namespace gatefold::cli {

// The most memory that this process ever had resident, mapped files included.
std::size_t peak_resident_bytes();

}  // namespace gatefold::cli
