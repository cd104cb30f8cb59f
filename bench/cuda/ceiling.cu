#include "ceiling.hpp"

#include <algorithm>
#include <stdexcept>

#include "copy_piece.cuh"
#include "cuda/common/ptx.cuh"
#include "cuda/copy_engine/copies.cuh"
#include "cuda/sm90/ptx.cuh"
#include "rounds.hpp"
#include "tensor_loop.cuh"

namespace gatefold::bench {
namespace {

using namespace gatefold::cuda;

constexpr int threads = product_threads + 128;  // the third warpgroup's registers go to the other two
constexpr int slots = 2;                        // of operands
constexpr int piece_bytes = 16 * 1024;
constexpr int pieces = 6;  // under way on each multiprocessor: 13 MB on all, 3 us of a memory that brings 4.4 TB/s
constexpr int shared_bytes = slots * slot_bytes + pieces * piece_bytes;

constexpr int most_tensors = 32;

struct Arguments {
  const std::uint32_t* operands;
  const std::byte* weights[most_tensors];
  std::size_t bytes[most_tensors];
  int tensors;
  float again;
  const std::byte* tokens;
  std::size_t token_pieces;
  float* sink;
  int steps;
};

// The copies of one block, by one thread.
struct Ring {
  std::byte* slots;
  std::uint64_t* full;
  int requested = 0;

  __device__ void request(const std::byte* from, int bytes, std::uint64_t policy) {
    const int slot = requested % pieces;
    if (requested >= pieces) barrier_wait(&full[slot], requested / pieces % 2 ^ 1);
    barrier_expect_bytes(&full[slot], bytes);
    copy_piece(&full[slot], slots + slot * piece_bytes, from, bytes, policy);
    ++requested;
  }
  __device__ void wait_for_all() const {
    for (int i = requested < pieces ? 0 : requested - pieces; i < requested; ++i) {
      barrier_wait(&full[i % pieces], i / pieces % 2);
    }
  }
};

// Every gridDim.x-th piece of each tensor, and as many pieces of tokens as go with it.
__device__ void copy_share(const Arguments& a, Ring& ring) {
  const std::uint64_t once = ptx::evict_first_policy();
  const std::uint64_t kept = ptx::mostly_kept_policy();
  const std::size_t step = std::size_t{gridDim.x} * piece_bytes;
  float owed = 0;
  std::size_t token_piece = blockIdx.x % a.token_pieces;
  for (int tensor = 0; tensor < a.tensors; ++tensor) {
    const std::size_t end = a.bytes[tensor];
    for (std::size_t at = std::size_t{blockIdx.x} * piece_bytes; at < end; at += step) {
      const int bytes = static_cast<int>(end - at < piece_bytes ? end - at : piece_bytes);
      ring.request(a.weights[tensor] + at, bytes, once);
      for (owed += a.again; owed >= 1; --owed) {
        ring.request(a.tokens + token_piece * piece_bytes, piece_bytes, kept);
        token_piece = token_piece + 1 == a.token_pieces ? 0 : token_piece + 1;
      }
    }
  }
  ring.wait_for_all();
}

__global__ __launch_bounds__(threads, 1) void ceiling_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) std::uint32_t shared[];
  __shared__ std::uint64_t full[pieces];
  if (threadIdx.x == product_threads) {
    for (std::uint64_t& barrier : full) barrier_init(&barrier, 1);
    fence_barrier_init();
  }
  if (threadIdx.x < product_threads) fill_slots<slots>(shared, a.operands);
  __syncthreads();
  if (threadIdx.x >= product_threads) {
    sm90::register_limit_lower<40>();
    if (threadIdx.x == product_threads) {
      Ring ring{reinterpret_cast<std::byte*>(shared) + slots * slot_bytes, full};
      copy_share(a, ring);
    }
    return;
  }
  sm90::register_limit_raise<232>();
  asm volatile("fence.proxy.async;\n");
  a.sink[blockIdx.x * product_threads + threadIdx.x] = multiply_slots<cute::bfloat16_t, slots>(shared, a.steps);
}

}  // namespace

void run_ceiling(const Ceiling& c, int multiprocessors, cudaStream_t stream) {
  require(cudaFuncSetAttribute(ceiling_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
          "cudaFuncSetAttribute");
  if (c.weights.size() > most_tensors) throw std::invalid_argument("a ceiling of more than 32 tensors");
  Arguments arguments{.operands = static_cast<const std::uint32_t*>(c.operands),
                      .weights = {},
                      .bytes = {},
                      .tensors = static_cast<int>(c.weights.size()),
                      .again = static_cast<float>(c.again),
                      .tokens = static_cast<const std::byte*>(c.tokens.data),
                      .token_pieces = std::max<std::size_t>(c.tokens.bytes / piece_bytes, 1),
                      .sink = static_cast<float*>(c.sink),
                      .steps = static_cast<int>(c.flops / wgmma_flops / multiprocessors)};
  for (std::size_t i = 0; i < c.weights.size(); ++i) {
    arguments.weights[i] = static_cast<const std::byte*>(c.weights[i].data);
    arguments.bytes[i] = c.weights[i].bytes;
  }
  ceiling_kernel<<<static_cast<unsigned>(multiprocessors), threads, shared_bytes, stream>>>(arguments);
  require(cudaGetLastError(), "ceiling_kernel");
}

}  // namespace gatefold::bench
