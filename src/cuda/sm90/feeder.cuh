#pragma once

#include "cuda/sm90/loader.cuh"

namespace gatefold::cuda::sm90 {

// In a block without producers, the consumer threads that request the k-steps, one for each load: each k-step as soon
// as the one whose slot it takes has been multiplied, by their own warpgroup two k-steps before. So the ring is full
// but for the slots that are being multiplied, as with producers, also where a tile ends and the next begins.
//
//     multiply       | k3      | k4      | k5      | ..
//     slot of        | k2 free | k3 free | k4 free |
//     request        |    k5   |    k6   |    k7   |     three slots
//
// They are elected lanes of warps 0, 1 and 2: of one warp they would do so one after the other. Where each stands
// lies in shared memory: registers are all taken by accumulators.
template <Config config, class Element>
class Feeder {
 public:
  static constexpr Feed feed = Feed::consumers;
  static constexpr bool prefetches = true;
  static constexpr bool holds_back = true;
  using Arguments = LoadArguments;
  struct Place {
    TileBoxes now;   // of the tile that is being multiplied
    TileBoxes next;  // of the one after it
    bool last;       // there is none
  };
  using Storage = Place[loads_per_step];

  // By whole warps: what the three do, who alone call what follows.
  template <class Loads>
  static __device__ __forceinline__ void by_loading_threads(Loads loads) {
    if (thread_again() < 32 * loads_per_step) {
      if (elect_one()) loads();
    }
  }

  // loader: of any load.
  __device__ Feeder(const Loader<config, Element>& loader, Slots<config, Element>& slots, Ring<config>& ring,
                    Storage& places)
      : loader_(loader), slots_(slots), ring_(ring), places_(places) {}

  // The first tile's first k-steps, one for every slot.
  __device__ void begin(const Tile& first) const {
    Place& at = place();
    at.next = loader().boxes_of(first);
    loader().begin();
    for (int slot = 0; slot < config.stages; ++slot) bring(at.next, slot, slot);
  }

  // Before each tile is multiplied.
  template <class Scheduler>
  __device__ void enter(const Scheduler& scheduler) const {
    Place& at = place();
    at.now = at.next;
    Scheduler following = scheduler;
    following.advance();
    at.last = following.done();
    if (!at.last) at.next = loader().boxes_of(following.tile());
  }

  // When the threads' warpgroup has released the slot of the tile's k-step `step`: as soon as the others have too, the
  // k-step that is to follow in it. k_steps >= stages, so that it is of this tile or the next.
  __device__ void refill(int slot, std::uint32_t phase, int step, int k_steps) const {
    int following = step + config.stages;
    const bool of_next = following >= k_steps;
    if (of_next) following -= k_steps;
    const Place& at = place();
    if (of_next && at.last) return;
    barrier_wait(&ring_.empty[slot], phase);
    bring(of_next ? at.next : at.now, following, slot);
  }

 private:
  static __device__ int warp() { return thread_again() / 32; }
  __device__ Place& place() const { return places_[warp()]; }
  __device__ Loader<config, Element> loader() const { return loader_.of(static_cast<Load>(warp())); }

  __device__ void bring(const TileBoxes& boxes, int step, int slot) const {
    loader().bring(boxes, step, slot, slots_, &ring_.full[slot]);
  }

  const Loader<config, Element>& loader_;
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
  Storage& places_;
};

}  // namespace gatefold::cuda::sm90
