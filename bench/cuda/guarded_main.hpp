#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>

namespace gatefold::bench {

// The exit code of a benchmark program: 0, 2 for arguments that are wrong (std::invalid_argument), 1 for other
// failures, which are named on stderr.
template <class Run>
int guarded_main(const char* program, Run run) {
  try {
    run();
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace gatefold::bench
