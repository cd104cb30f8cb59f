#pragma once

#include "cuda/sm90/loader.cuh"

namespace gatefold::cuda::sm90 {

// Loads say which threads request the operands of the copy engine, and when. Their members:
//
//     feed        which threads
//     Arguments   their part of the kernel's arguments
//     Storage     shared memory
//     prefetches  whether the first tile's weights begin their way to L2 before blocks have met and the kernel before
//                 has ended
//
// and what the kernel calls of them in either role. All of them request by a Loader. begin() waits for the kernel
// before, in every thread that requests; where the weights are settled, which no kernel before may still be writing,
// in the one that requests tokens alone. holds_back: that one then lets the next kernel begin; else the kernel does so
// at once.

// A producer warp: it runs ahead of the consumers, through all slots of the ring. All of its lanes wait, and an elected
// one requests: the compiler then knows that what it asks for is the same in all lanes, and makes no loop over them,
// of some 120 cycles for each box (check_wgmma_code.py).
template <Config config, class Element>
class Producer {
 public:
  static constexpr Feed feed = Feed::producers;
  static constexpr bool prefetches = true;
  static constexpr bool holds_back = true;
  using Arguments = LoadArguments;
  using Storage = TileBoxes[loads_per_step];  // of each warp

  __device__ Producer(const Loader<config, Element>& loader, Slots<config, Element>& slots, Ring<config>& ring,
                      Storage& storage)
      : loader_(loader), slots_(slots), ring_(ring), storage_(storage) {}

  // Before the first tile's.
  __device__ void begin() const { loader_.begin(); }

  // Fills the ring with its load of the k-steps of one tile.
  __device__ void load(const Tile& tile, int k_steps, RingPosition<config.stages>& position) const {
    if constexpr (config.weights_may_pass_once()) {
      if (loader_.weights_pass_once()) return load_by(tile, k_steps, position, ptx::evict_first_policy());
    }
    load_by(tile, k_steps, position);
  }

 protected:
  // policy: of the weights in L2, or nothing.
  template <class... Policy>
  __device__ void load_by(const Tile& tile, int k_steps, RingPosition<config.stages>& position,
                          Policy... policy) const {
    TileBoxes own;
    TileBoxes& boxes = config.few_registers() ? storage_[producer_load<config>()] : own;
    if constexpr (config.few_registers()) {
      if (elect_one()) boxes = loader_.boxes_of(tile);  // always the same lane, which alone reads them
    } else {
      boxes = loader_.boxes_of(tile);
    }
    // A loop for either: neither holds registers for what the other brings.
    if (loader_.brings_tokens()) {
      ring_.for_each_step(k_steps, position, [&](int step, int slot) {
        if (elect_one()) loader_.bring_tokens(boxes, step, slot, slots_, &ring_.full[slot]);
      });
    } else {
      ring_.for_each_step(k_steps, position, [&](int step, int slot) {
        if (!elect_one()) return;
        loader_.bring_strip(boxes, step, slot, slots_, &ring_.full[slot], policy...);
        barrier_arrive(&ring_.full[slot]);
      });
    }
  }

  const Loader<config, Element>& loader_;

 private:
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
  Storage& storage_;
};

// The same of a problem's settled weights, of which a step reads the same ones many times over: they come into the
// ring, as many slots as it has, while the kernel before ends, and most of them stay in L2.
template <Config config, class Element>
class ProducerOfSettledWeights : public Producer<config, Element> {
 public:
  using Producer<config, Element>::Producer;
  static constexpr bool prefetches = false;
  static constexpr bool holds_back = false;

  __device__ void begin() const {
    if (this->loader_.brings_tokens()) wait_for_previous_grid();
  }

  __device__ void load(const Tile& tile, int k_steps, RingPosition<config.stages>& position) const {
    this->load_by(tile, k_steps, position, ptx::mostly_kept_policy());
  }
};

}  // namespace gatefold::cuda::sm90
