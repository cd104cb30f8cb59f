#pragma once

#include <cstdint>
#include <vector>

#include "support/public_types.hpp"

namespace gatefold::test {

// Every layout whose block divides F = lines of one half, for blocks of 2^n and of 3 * 2^n.
std::vector<Layout> layouts_for(std::int64_t lines);

// For line 0, 1, ... of each half, where it stands in the tensor that holds it: built by laying the lines out one after
// the other, as the header's words have it.
struct Positions {
  std::vector<std::int64_t> gate;
  std::vector<std::int64_t> up;
};
Positions positions(const Layout& layout, std::int64_t lines);

}  // namespace gatefold::test
