#include "cli/memory_use.hpp"

#include <sys/resource.h>

namespace gatefold::cli {

std::size_t peak_resident_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;  // Linux counts KiB
}

}  // namespace gatefold::cli
