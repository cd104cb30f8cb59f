#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/element.cuh"
#include "cuda/common/ptx.cuh"
#include "cuda/decode/config.hpp"
#include "cuda/decode/epilogue.cuh"
#include "cuda/decode/product.cuh"
#include "cuda/decode/ptx.cuh"

// gate_up and gemm for few tokens, bound by reading the weights once.
//
//   weights --cp.async--> a ring of the warp's own --16 bytes--> registers --mma.sync--> 16 rows x 8 tokens of sums
//   x       ------------------ 16 bytes, a group ahead or for good -> registers --'
//
// Weights are the row operand of m16n8k16, tokens the column one. A sum's terms may come in any order, as long as both
// operands agree, so a lane takes 16 neighbouring bytes where the instruction's own order would want four words that
// lie apart: lane 4 g + q holds elements 8 q ... 8 q + 7 of a step for rows g and g + 8, and for token g. A warp reads
// from the ring what it copied there itself: no barrier of the block but at a tile's end, where the warps' sums meet.
// They are added in the order of the warps, whatever T is: a token's bits depend on its row of x alone.
namespace gatefold::cuda::decode {

// The loads: brings one warp's weights, group after group and tile after tile, `stages` groups ahead. As many lanes as
// a row of a group has pieces of 16 bytes copy it at a time.
template <Product product, Config config>
class WeightRing {
 public:
  __device__ WeightRing(const Arguments& p, std::byte* shared)
      : p_(p),
        policy_(ptx::evict_first_policy()),
        ring_(shared_address(shared) + warp() * config.stages * config.stage_bytes()),
        table_(reinterpret_cast<const std::byte**>(shared + config.ring_bytes()) + warp() * config.rows()),
        tile_(static_cast<int>(blockIdx.x)),
        at_(Config::first_group(warp())) {
    find_rows();
  }

  // Before the wait: of weights that are settled the first groups are copied, others begin their way to L2, for the
  // kernel before may still be writing them, and what it writes arrives in L2 too.
  __device__ void begin_before_wait() {
    if (p_.weights_settled) {
      begin();
    } else {
      prefetch();
    }
  }
  __device__ void begin_after_wait() {
    if (!p_.weights_settled) begin();
  }

  // By all threads, before anything is read that the kernel before may still write: x, too.
  __device__ void wait_for_previous_grid() const { ptx::wait_for_previous_grid(); }

  // Always one group of copies, an empty one past the end, so that waiting can count them.
  __device__ __forceinline__ void fetch(int stage) {
    if (tile_ < p_.tiles && at_ < p_.depth) {
      constexpr int rows_at_once = 32 / config.line_chunks();
      const int chunk = lane() % config.line_chunks();
      const int k = at_ + chunk * Config::chunk_elements;
      const bool inside = k < p_.depth;
      const std::int64_t offset = inside ? std::int64_t{k} * Config::element_bytes : 0;
      const int row = lane() / config.line_chunks();
      const std::uint32_t to = ring_ + stage * config.stage_bytes() + row * config.line_bytes() + place(row, chunk);
#pragma unroll
      for (int i = 0; i < config.rows(); i += rows_at_once) {
        copy_async_16(to + i * config.line_bytes(), table_[i + row] + offset, inside ? 16 : 0, policy_);
      }
      at_ = config.next_group(at_);
      if (at_ >= p_.depth) {
        at_ = Config::first_group(warp());
        tile_ += static_cast<int>(gridDim.x);
        find_rows();
      }
    }
    commit_copies();
  }

  // Until the group has come that was fetched `stages` fetches ago.
  __device__ __forceinline__ void wait() const {
    wait_for_copies<config.stages - 1>();
    __syncwarp();
  }

  // This lane's 16 bytes of row g, or g + 8, of 16 rows.
  __device__ __forceinline__ uint4 read(int stage, int row_group, int eight, int step) const {
    const int row = row_group * 16 + eight * 8 + lane() / 4;
    return load_shared(ring_ + stage * config.stage_bytes() + row * config.line_bytes() +
                       place(row, step * 4 + lane() % 4));
  }

 private:
  // The first tile's first groups, to L2.
  __device__ void prefetch() const {
    if (tile_ >= p_.tiles) return;
    constexpr int line_elements = 128 / Config::element_bytes;  // which one instruction brings
    int at = at_;
#pragma unroll
    for (int stage = 0; stage < config.stages; ++stage) {
      for (int i = lane(); i < config.rows() * config.group_elements() / line_elements; i += 32) {
        const int k = at + i / config.rows() * line_elements;
        if (k < p_.depth) prefetch_line(table_[i % config.rows()] + std::int64_t{k} * Config::element_bytes);
      }
      at = config.next_group(at);
    }
  }

  __device__ void begin() {
#pragma unroll
    for (int stage = 0; stage < config.stages; ++stage) fetch(stage);
  }

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int place(int row, int chunk) { return place_of_chunk(row, chunk) * 16; }

  __device__ __forceinline__ void find_rows() {
    __syncwarp();
    if (tile_ < p_.tiles) {
      for (int r = lane(); r < config.rows(); r += 32) {
        table_[r] = TileOf<product>::row(p_, std::int64_t{tile_} * tile_columns(product, config), r);
      }
    }
    __syncwarp();
  }

  const Arguments& p_;
  std::uint64_t policy_;
  std::uint32_t ring_;
  const std::byte** table_;
  int tile_;
  int at_;  // the group's first element
};

// This lane's part of x: token g of each group of eight, zeros where there is none.
template <Config config>
class Tokens {
 public:
  __device__ Tokens(const Arguments& p, std::int64_t first_token) : depth_(p.depth) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < config.token_groups; ++n) {
      const std::int64_t token = first_token + n * 8 + lane / 4;
      x_[n] = token < p.tokens ? p.x + token * p.x_stride + lane % 4 * 16 : nullptr;
    }
    q_ = lane % 4;
  }

  __device__ __forceinline__ void read(int at, uint4 (&x)[config.steps][config.token_groups]) const {
#pragma unroll
    for (int step = 0; step < config.steps; ++step) {
      const int k = at + step * Config::step_elements;
      const bool inside = k + q_ * Config::chunk_elements < depth_;
#pragma unroll
      for (int n = 0; n < config.token_groups; ++n) {
        x[step][n] = load_or_zero(inside && x_[n] != nullptr, x_[n] + std::int64_t{k} * Config::element_bytes);
      }
    }
  }

 private:
  const std::byte* x_[config.token_groups];
  int depth_;
  int q_;
};

template <int steps, int token_groups>
__device__ __forceinline__ void copy(const uint4 (&from)[steps][token_groups], uint4 (&to)[steps][token_groups]) {
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int n = 0; n < token_groups; ++n) to[step][n] = from[step][n];
  }
}

// A group's products: of the weights in a stage of the ring, and x of their terms.
template <class Element, Config config, class Loads>
__device__ __forceinline__ void multiply_group(const Loads& ring, int stage,
                                               const uint4 (&x)[config.steps][config.token_groups],
                                               float (&acc)[config.row_groups][config.token_groups][4]) {
#pragma unroll
  for (int step = 0; step < config.steps; ++step) {
#pragma unroll
    for (int m = 0; m < config.row_groups; ++m) {
      const uint4 first = ring.read(stage, m, 0, step);
      const uint4 second = ring.read(stage, m, 1, step);
#pragma unroll
      for (int n = 0; n < config.token_groups; ++n) {
        const uint4 t = x[step][n];
        mma<Element>(acc[m][n], first.x, second.x, first.y, second.y, t.x, t.y);
        mma<Element>(acc[m][n], first.z, second.z, first.w, second.w, t.z, t.w);
      }
    }
  }
}

// Shape: a type that names what the kernel is made of: config, Element, product, Loads, Epilogue (launch.cuh). nvcc
// does not take a value of class type as a kernel's template argument.
template <class Shape>
__global__ void __launch_bounds__(Config::threads, 1) decode_kernel(const __grid_constant__ Arguments p) {
  constexpr Config config = Shape::config;
  extern __shared__ __align__(128) std::byte shared[];
  auto* const sums = reinterpret_cast<float*>(shared + config.ring_bytes() + config.table_bytes());
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first_token = p.first_token + std::int64_t{blockIdx.y} * config.tokens();

  typename Shape::Loads ring(p, shared);
  ring.begin_before_wait();
  ring.wait_for_previous_grid();
  ptx::launch_next_grid();
  ring.begin_after_wait();
  const Tokens<config> tokens(p, first_token);
  // x of all of the warp's runs, for good; or of the next group, so that no slot of the ring waits for it: it comes
  // from L2 where L1 doesn't hold it.
  constexpr int kept = config.resident_runs > 0 ? config.resident_runs : config.reads_ahead() ? 1 : 0;
  uint4 kept_x[kept > 0 ? kept : 1][config.steps][config.token_groups];
#pragma unroll
  for (int i = 0; i < kept; ++i) tokens.read(Config::first_group(warp) + i * Config::run_stride, kept_x[i]);

  typename Shape::Epilogue epilogue;
  int stage = 0;
  int buffer = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < p.tiles; tile += static_cast<int>(gridDim.x)) {
    // rows g, g, g + 8, g + 8 of 16; tokens 2 q, 2 q + 1, 2 q, 2 q + 1 of 8
    float acc[config.row_groups][config.token_groups][4] = {};
    const auto multiply = [&](const uint4(&x)[Shape::config.steps][Shape::config.token_groups]) {
      ring.wait();
      multiply_group<typename Shape::Element, Shape::config>(ring, stage, x, acc);
      __syncwarp();  // all lanes have read what is overwritten now
      ring.fetch(stage);
      stage = (stage + 1) % Shape::config.stages;
    };
    if constexpr (config.resident_runs > 0) {
#pragma unroll
      for (int run = 0; run < config.resident_runs; ++run) {
        if (Config::first_group(warp) + run * Config::run_stride < p.depth) multiply(kept_x[run]);
      }
    } else {
      int next = 0;
      for (int at = Config::first_group(warp); at < p.depth; at = next) {
        next = config.next_group(at);
        uint4 x[config.steps][config.token_groups];
        if constexpr (config.reads_ahead()) {
          copy(kept_x[0], x);
          tokens.read(next < p.depth ? next : Config::first_group(warp), kept_x[0]);
        } else {
          tokens.read(at, x);
        }
        multiply(x);
      }
    }

    // [warps][tokens_at_once][sums_pitch]. Of two buffers, the one that is written now was read before the last
    // barrier.
#pragma unroll
    for (int group = 0; group < config.token_groups; ++group) {
      if (config.sum_buffers == 1) __syncthreads();
      float* const mine = sums + (buffer * Config::warps + warp) * config.warp_sums();
#pragma unroll
      for (int m = 0; m < config.row_groups; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int token = lane % 4 * 2 + i % 2;
          mine[token * config.sums_pitch() + m * 16 + lane / 4 + i / 2 * 8] = acc[m][group][i];
        }
      }
      __syncthreads();
      epilogue.store(p, tile, first_token + group * 8, sums + buffer * Config::warps * config.warp_sums());
      if (config.sum_buffers == 2) buffer ^= 1;
    }
  }
}

}  // namespace gatefold::cuda::decode
