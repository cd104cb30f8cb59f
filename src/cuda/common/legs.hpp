#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"

namespace gatefold::cuda {

// A long product is enqueued as several launches, legs. Clusters at work at one time read the same rows of x and of the
// weights, and find them in L2 as long as they are at about the same k. Nothing keeps them there, and they drift apart:
// Llama 70B with 16384 tokens read 35 GB from memory in one launch, and 13 GB with all clusters beginning each tile
// together. Where one launch ends and the next begins they meet again.
//
// The least in a leg, 2 ms; the most is about twice as much. At its end every block waits for the last one, some 5 us.
// Least ones of 512 and 2048 are slower by 0.3 to 0.4 % on average, of 256 and 4096 by 1 %.
constexpr std::int64_t k_steps_per_leg = 1024;
// A stream takes about a thousand launches; then the host, which should only enqueue, would wait. Reached with a
// million tokens of Llama 70B.
constexpr std::int64_t most_legs = 512;

// Of so many work tiles, each of so many k-steps, those in each leg but the last: whole rounds of what is resident.
constexpr std::int32_t work_tiles_per_leg(std::int64_t work_tiles, std::int64_t k_steps, std::int64_t resident) {
  const std::int64_t rounds = ceil_div(work_tiles, resident);
  const std::int64_t legs = std::clamp<std::int64_t>(rounds * k_steps / k_steps_per_leg, 1, most_legs);
  return static_cast<std::int32_t>(ceil_div(rounds, legs) * resident);
}

}  // namespace gatefold::cuda
