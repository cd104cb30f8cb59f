#pragma once

#include "cuda/sm90/loader.cuh"

namespace gatefold::cuda::sm90 {

// In a block without producers, the one consumer thread that asks for the k-steps: for each as soon as the one whose
// slot it takes has been multiplied, by its own warpgroup two k-steps before. So the ring is full but for the slots
// that are being multiplied, as with producers, also where a tile ends and the next begins.
//
//     multiply       | k3      | k4      | k5      | ..
//     slot of        | k2 free | k3 free | k4 free |
//     asks for       |    k5   |    k6   |    k7   |     three slots
//
// Where it stands lies in shared memory: registers are all taken by accumulators.
template <Config config, class Element>
class Feeder {
 public:
  struct Storage {
    TileBoxes now;   // of the tile that is being multiplied
    TileBoxes next;  // of the one after it
    bool last;       // there is none
  };

  __device__ Feeder(const Loader<config, Element>& loader, Slots<config, Element>& slots, Ring<config>& ring,
                    Storage& at)
      : loader_(loader), slots_(slots), ring_(ring), at_(at) {}

  // The first tile's first k-steps, one for every slot.
  __device__ void begin(const Tile& first) const {
    at_.next = loader_.boxes_of(first);
    loader_.prefetch_first_half(at_.next);
    loader_.prefetch_second_half(at_.next);
    wait_for_previous_grid();
    for (int slot = 0; slot < config.stages; ++slot) bring(at_.next, slot, slot);
  }

  // Before each tile is multiplied.
  __device__ void enter(const TileScheduler<config>& scheduler) const {
    at_.now = at_.next;
    TileScheduler<config> following = scheduler;
    following.advance();
    at_.last = following.done();
    if (!at_.last) at_.next = loader_.boxes_of(following.tile());
  }

  // When this thread's warpgroup has released the slot of the tile's k-step `step`: as soon as the others have too, the
  // k-step that is to follow in it. k_steps >= stages, so that it is of this tile or the next.
  __device__ void refill(int slot, std::uint32_t phase, int step, int k_steps) const {
    int following = step + config.stages;
    const bool of_next = following >= k_steps;
    if (of_next) following -= k_steps;
    if (of_next && at_.last) return;
    barrier_wait(&ring_.empty[slot], phase);
    bring(of_next ? at_.next : at_.now, following, slot);
  }

 private:
  __device__ void bring(const TileBoxes& boxes, int step, int slot) const {
    std::uint64_t* full = &ring_.full[slot];
    const int k = step * Config::tile_k;
    loader_.bring_tokens(boxes, k, slot, slots_, full);
    loader_.bring_first_half(boxes, k, slot, slots_, full);
    loader_.bring_second_half(boxes, k, slot, slots_, full);
  }

  const Loader<config, Element>& loader_;
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
  Storage& at_;
};

}  // namespace gatefold::cuda::sm90
