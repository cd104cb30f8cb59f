#pragma once

#include <cstdint>

#ifdef GATEFOLD_TEST_DELAYS
#include <cstdlib>
#endif

// Random delays before every barrier, copy and store and after every wait, in a build for tests alone (CMake's
// GATEFOLD_TEST_DELAYS): a result that depends on who comes first then differs from seed to seed
// (tests/cuda/delays_test.cpp). In every other build this file comes to no instruction and no byte.
namespace gatefold::cuda {

#ifdef GATEFOLD_TEST_DELAYS

// Travels with a kernel's arguments, so that each launch may have another. 0: no delays.
struct DelaySeed {
  std::uint32_t delay_seed = 0;

  // Asked at each launch: a test changes the variable between two of them.
  void take_from_environment() {
    const char* text = std::getenv("GATEFOLD_TEST_DELAY_SEED");
    delay_seed = text == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  }
};

struct DelayState {
  static constexpr int most_warps = 32;
  std::uint32_t seed;
  std::uint32_t calls[most_warps];  // by each warp so far: the same place is another one at each visit
};

// Of each block, in device memory, since kernels may need all of their shared memory; two launches at a time share it.
static __device__ DelayState delay_states[4096];

__device__ inline DelayState& delay_state() { return delay_states[blockIdx.x % 4096]; }

// By the whole block, before anything else.
__device__ inline void begin_delays(const DelaySeed& seed) {
  DelayState& state = delay_state();
  if (threadIdx.x < DelayState::most_warps) state.calls[threadIdx.x] = 0;
  if (threadIdx.x == 0) state.seed = seed.delay_seed;
  __syncthreads();
}

// Every bit of the result depends on every bit of x.
__device__ inline std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

// At one visit in eight up to 2 us, some 3000 cycles: a k-step takes 1536 at most. One warp in eight is slow and does
// so at every other visit, so that it falls behind by as much as the barriers let it. The lanes that come together wait
// together, since wgmma and the aligned barriers want whole warps.
__device__ inline void delay() {
  DelayState& state = delay_state();
  const std::uint32_t seed = state.seed;
  if (seed == 0) return;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t together = __activemask();
  const int leader = __ffs(static_cast<int>(together)) - 1;
  std::uint32_t call = 0;
  if (static_cast<int>(threadIdx.x % 32) == leader) call = state.calls[warp]++;
  call = __shfl_sync(together, call, leader);

  const std::uint32_t mine = mixed(mixed(seed) + blockIdx.x * DelayState::most_warps + warp);
  const std::uint32_t visits = mine % 8 == 0 ? 2 : 8;
  const std::uint32_t random = mixed(mine + call);
  if (random % visits == 0) __nanosleep(random >> 22);  // for up to twice as long as asked: 2 x 1023 ns
}

#else

struct DelaySeed {
  void take_from_environment() {}
};
__device__ inline void begin_delays(const DelaySeed& /*seed*/) {}
__device__ inline void delay() {}

#endif

}  // namespace gatefold::cuda
