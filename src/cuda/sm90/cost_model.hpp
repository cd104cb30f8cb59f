#pragma once

#include <span>

#include "core/problem.hpp"
#include "cuda/sm90/kernels.hpp"

// Which kernel a run takes: pure host code.
namespace gatefold::cuda::sm90 {

struct Machine {
  int multiprocessors;
  double bytes_per_second;
  int clusters_of_four = multiprocessors / 4;  // that are at work at a time: fewer where they cut a GPC badly

  constexpr int clusters(const Config& c) const {
    return c.cluster() == 4 ? clusters_of_four : multiprocessors / c.cluster();
  }
};

// Of a device that is the current one, for a family of kernels.
Machine machine_of(const DeviceProperties& device, std::span<const Kernel> kernels);
// Of an H200 on which so many clusters of four are at work at a time. Chips differ in it (docs/kernels/sm90.md).
Machine h200_machine(int clusters_of_four);

// Can the copy engine bring this layout in tiles of the config? In boxes of 8 rows or a multiple.
bool fits_layout(const Config& config, const Problem& problem);

// The same, and where consumers request the boxes (feeder.cuh): do the k-steps ahead lie in this tile or the next, and
// does a strip of the weights come in two boxes at most? Nothing hides the time of more (docs/kernels/sm90.md). And of
// a batch-invariant problem: are its sums divided as every other kernel's?
bool fits(const Config& config, const Problem& problem);

// May a kernel be chosen for so many tokens? One for one row of tiles for what fits one: every row more would bring all
// weights. By request each takes any number, and some run by request alone.
constexpr bool is_acceptable_for(const Config& config, std::int64_t tokens) {
  return (!config.for_one_row() || tokens <= config.tile_m);
}

// Is it among those that are chosen first? Kernels whose blocks share weights are for more than one row of tiles: of a
// single one a block of each cluster has the tokens, and the others none. Parts of swap-AB tiles are for more than 128
// tokens, up to which tiles of as few leave room for more slots.
constexpr bool is_meant_for(const Config& config, std::int64_t tokens) {
  const bool wide_parts = in_parts(config.product) && config.swap_ab;
  return is_acceptable_for(config, tokens) && (config.cluster_m == 1 || tokens > config.tile_m) &&
         (!wide_parts || tokens > 128);
}

// What the estimate knows of a chip beside Machine, fitted to its times (fit_sm90_cost_model).
struct Figures {
  double fixed_seconds;             // launch, first loads, and the last tile's epilogue
  double cluster_seconds;           // in which the blocks of a cluster meet, at the beginning and at the end
  double exchange_seconds;          // in which two blocks put their sums of a tile of 128 weight rows together
  double exposed_epilogue_seconds;  // of a tile whose warpgroups work together: nothing multiplies meanwhile
  // A round that is not full counts for less than a full one: with fewer multiprocessors at work the clock rises.
  double idle_fraction;
  // Of the time of slabs without tokens, what is saved of those that all rows of tiles lack; of those that some lack;
  // and of the latter in tiles of two slabs, of which one is half of the products, but for all of the weights.
  double left_out_of_all;
  double left_out_of_some;
  double left_out_of_two;
  double subtile_round;     // of subtiles, in rounds of whole tiles: each brings as many weights as a whole one
  double narrow_round;      // of tiles of one strip: each brings as many tokens as one of two
  double narrow_together;   // the same where the warpgroups work on a tile together
  double exposed_fraction;  // of the shorter of arithmetic and memory traffic, what the longer does not hide
  // What a multiprocessor draws at most, of the share it has when all of them draw: a few of them can't use up the
  // memory.
  double most_of_average;
  // From the request of weights that are in memory to their arrival, in a slot that was just multiplied.
  double latency_seconds;
  double idle_traffic;  // of a single round's idle multiprocessors, the share whose bandwidth the others cannot draw
  double box_seconds;   // in which a producer requests a box, whatever its size
};
extern const Figures h200_figures;

// Seconds that a run should take, to compare kernels with: rounds of tiles, each at the kernel's rate, or the bytes
// that must be moved, or the boxes they come in, whichever takes longest, and what of the rest is exposed.
double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine,
                         const Figures& figures = h200_figures);

// The kernel of least estimated time among those that fit and of whose clusters the machine holds one, or null.
const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine);

}  // namespace gatefold::cuda::sm90
