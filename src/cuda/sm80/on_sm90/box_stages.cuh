#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include "cuda/sm80/k_tiles.cuh"
#include "cuda/sm80/on_sm90/box_loader.cuh"

namespace gatefold::cuda::sm80 {

// The ring of k-tiles in shared memory, filled by the copy engine, as Stages is by the threads. A stage ends with two
// barriers: `full` counts the bytes of the four boxes, `empty` the warps that have read the stage, those of both blocks
// of a cluster, since each sends tokens to the other. So warps wait for no others but through the ring.
//
//     multiply     | n                          | n + 1                      | n + 2
//     request      |            n + 2           |            n + 3           |
//     in place of  |            n - 1           |            n               |
//
// Nothing keeps blocks that read the same rows at the same k, where they would find them in L2. The threads' copies do,
// by the way; the copy engine's blocks drift apart: Llama 70B with 4096 tokens read 11 GB in one launch, 3.2 with
// Stages. So a long product takes several launches (common/legs.hpp), and reads 3.6.
template <Config C, class Loader>
class BoxStages {
  static constexpr int full_at = C.tile_bytes();  // in a stage
  static constexpr int empty_at = full_at + 8;
  static constexpr int boxes_at = full_at + 64;  // in stage 0
  static constexpr int last = (C.stages - 1) * C.stage_bytes();

 public:
  using Arguments = BoxParams;

  // A k-tile that is about to be requested.
  struct Request {
    typename Loader::Box box;
    std::uint32_t stage;
    std::uint32_t parity;
    bool free;  // the stage is known to be
  };

  __device__ BoxStages(const BoxParams& params, std::uint32_t shared)
      : shared_(shared),
        k_tiles_(params.k_tiles),
        release_(release_address(shared)),
        loader_(params, shared + boxes_at) {
    begin_delays(params);
    init();
    ptx::launch_next_grid();
    wait_for_previous_grid();
#pragma unroll 1
    for (int stage = 0; stage + 1 < C.stages; ++stage) {
      if (Loader::issues_loads() && elect_one()) bring(loader_.box(), shared + stage * C.stage_bytes());
      loader_.advance();
      if (loader_.left() == 0) loader_.next_tile();
    }
    barrier_wait(shared + full_at, 0);
  }

  // A block must outlive what the other sends it: copies and arrivals.
  __device__ static void end() {
    if constexpr (C.cluster > 1) cluster_sync();
  }

  // multiply() for each k-tile of one output tile, the current stage; it ends with advance().
  template <class Multiply>
  CUTE_DEVICE void for_each_k_tile(Multiply multiply) {
    sm80::for_each_k_tile(loader_, k_tiles_, multiply);
  }

  __device__ std::uint32_t current() const { return offset_; }

  // The next k-tile is requested in two steps, so that products hide the latency of the first.
  __device__ __forceinline__ Request prepare() const {
    const bool first = offset_ == 0;
    Request request;
    request.stage = shared_ + (first ? last : offset_ - C.stage_bytes());
    request.parity = first ? phase_ ^ 1 : phase_;
    request.free = barrier_test(request.stage + empty_at, request.parity);
    request.box = loader_.box();
    return request;
  }
  __device__ __forceinline__ void issue(const Request& request) const {
    if (Loader::issues_loads() && elect_one()) {
      if (!request.free) barrier_wait(request.stage + empty_at, request.parity);
      bring(request.box, request.stage);
    }
  }

  // So it is with the step to the next stage: this may show that it has come.
  __device__ __forceinline__ void look_ahead() {
    const bool wraps = offset_ == last;
    ready_ = barrier_test(shared_ + (wraps ? 0 : offset_ + C.stage_bytes()) + full_at, wraps ? phase_ ^ 1 : phase_);
  }

  // To be called when this warp has read all of the current stage, `read_last` last: the next becomes current. An
  // arrival does not wait for matrices that are on their way to registers, so its address is made to depend on the last
  // of them: `read_last` adds the bits of a barrier's address that are 0, which the compiler does not know.
  __device__ __forceinline__ void advance(std::uint32_t read_last) {
    if (release_ != 0) barrier_arrive_at(release_ + offset_ + (read_last & release_ & 7));
    loader_.advance();
    const bool wraps = offset_ == last;
    offset_ = wraps ? 0 : offset_ + C.stage_bytes();
    phase_ ^= wraps ? 1U : 0U;
    if (!ready_) barrier_wait(shared_ + offset_ + full_at, phase_);
  }

 private:
  __device__ void init() const {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage <= last; stage += C.stage_bytes()) {
        barrier_init(shared_ + stage + full_at, Loader::warps);
        barrier_init(shared_ + stage + empty_at, C.threads() / 32 * C.cluster);
      }
      fence_barrier_init();
    }
    if constexpr (C.cluster > 1) {
      cluster_meet();
    } else {
      __syncthreads();
    }
  }

  // Where a lane tells one block of the cluster that its warp has read stage 0; or 0.
  __device__ static std::uint32_t release_address(std::uint32_t shared) {
    const std::uint32_t lane = threadIdx.x % 32;
    return lane < C.cluster ? cluster_address(shared + empty_at, lane) : 0;
  }

  __device__ __forceinline__ void bring(const typename Loader::Box& box, std::uint32_t stage) const {
    loader_.bring(box, stage, stage + full_at);
  }

  std::uint32_t shared_;
  std::uint32_t offset_ = 0;  // of the stage that is multiplied
  std::uint32_t phase_ = 0;   // of its barriers
  bool ready_ = false;        // the next stage is known to have come
  int k_tiles_;
  std::uint32_t release_;
  Loader loader_;
};

}  // namespace gatefold::cuda::sm80
