#pragma once

#include <cstdint>
#include <random>

namespace gatefold::test {

using Random = std::mt19937_64;

// This process's seed: GATEFOLD_TEST_SEED if it is set, or a fresh one. main() prints it.
std::uint64_t seed();

// A generator for the running test, from the seed and the test's name: a test repeats with its seed whatever runs
// before it.
Random test_random();

// GATEFOLD_TEST_THOROUGH=1: every combination in place of a fresh sample of them.
bool thorough();

}  // namespace gatefold::test
