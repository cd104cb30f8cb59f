#pragma once

#include "cuda/sm90/loader.cuh"

namespace gatefold::cuda::sm90 {

// What a producer thread brings to the ring: one of the three parts of every k-step, so that many boxes of one part
// hold up none of the others.
enum class Part : std::uint8_t { tokens, first_half, second_half };
inline constexpr int parts = 3;

template <Config config, class Element>
class Producer {
 public:
  __device__ Producer(Part part, const Loader<config, Element>& loader, Slots<config, Element>& slots,
                      Ring<config>& ring)
      : part_(part), loader_(loader), slots_(slots), ring_(ring) {}

  // Where two blocks share the weights, block 0 brings the first half for both and block 1 the second.
  __device__ bool brings_something(const ClusterPlace<config>& place) const {
    if (config.cluster_m == 1 || part_ == Part::tokens) return true;
    return (place.m == 0) == (part_ == Part::first_half);
  }

  __device__ void prefetch_weights(const Tile& tile) const {
    const TileBoxes boxes = loader_.boxes_of(tile);
    if (part_ == Part::first_half) loader_.prefetch_first_half(boxes);
    if (part_ == Part::second_half) loader_.prefetch_second_half(boxes);
  }

  // Fills the ring with this part of the k-steps of one tile.
  __device__ void load(const Tile& tile, int k_steps, RingPosition<config.stages>& position) const {
    const TileBoxes boxes = loader_.boxes_of(tile);
    for (int step = 0; step < k_steps; ++step) {
      const int slot = position.slot;
      barrier_wait(&ring_.empty[slot], position.phase ^ 1);
      bring(boxes, step * Config::tile_k, slot);
      position.advance();
    }
  }

 private:
  __device__ void bring(const TileBoxes& boxes, int k, int slot) const {
    std::uint64_t* full = &ring_.full[slot];
    switch (part_) {
      case Part::tokens: return loader_.bring_tokens(boxes, k, slot, slots_, full);
      case Part::first_half: return loader_.bring_first_half(boxes, k, slot, slots_, full);
      case Part::second_half: return loader_.bring_second_half(boxes, k, slot, slots_, full);
    }
  }

  Part part_;
  const Loader<config, Element>& loader_;
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
};

}  // namespace gatefold::cuda::sm90
