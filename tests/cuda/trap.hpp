#pragma once

namespace gatefold::test {

// Runs a kernel that faults, after which every call to the current context fails, and waits for its end.
void run_into_a_trap();

}  // namespace gatefold::test
