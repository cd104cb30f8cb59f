#pragma once

#include "cuda/sm90/loader.cuh"

namespace gatefold::cuda::sm90 {

// A producer thread: it runs ahead of the consumers, through all slots of the ring.
template <Config config, class Element>
class Producer {
 public:
  __device__ Producer(const Loader<config, Element>& loader, Slots<config, Element>& slots, Ring<config>& ring)
      : loader_(loader), slots_(slots), ring_(ring) {}

  // Fills the ring with its part of the k-steps of one tile.
  __device__ void load(const Tile& tile, int k_steps, RingPosition<config.stages>& position) const {
    const TileBoxes boxes = loader_.boxes_of(tile);
    for (int step = 0; step < k_steps; ++step) {
      const int slot = position.slot;
      barrier_wait(&ring_.empty[slot], position.phase ^ 1);
      loader_.bring(boxes, step * Config::tile_k, slot, slots_, &ring_.full[slot]);
      position.advance();
    }
  }

 private:
  const Loader<config, Element>& loader_;
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
};

}  // namespace gatefold::cuda::sm90
