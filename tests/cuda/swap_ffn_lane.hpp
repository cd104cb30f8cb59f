#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_support.hpp"
#include "differences.hpp"
#include "swap_ffn/experiment.hpp"

// Swap-FFN steps on a GPU whose results are compared bit for bit, among them those of a chain: the MLPs of an event in
// one launch, whose blocks wait for one another.
namespace gatefold::test {

// The sizes that the kernels of a step are made for, one event of two MLPs.
SwapFfnDesc real_desc(gatefold_dtype dtype);

// Why no step is chained on device 0, whatever its sizes; "" where some are.
std::string why_no_chains();

// Whether a step of these plan and batch has a chain for each event.
bool is_chained(const SwapFfn& plan, std::int64_t batch);

// The plan of another number of events or MLPs, and what it prepares.
void plan_anew(SwapFfnExperiment& experiment, const SwapFfnDesc& desc);

// Until all work on the stream is done. Blocks that wait for what never comes would hold the device for ever, and with
// it every test that follows: after a minute the program ends.
void wait_for_end(const Stream& stream);

// Steps from an experiment's state, of its weights and the first `batch` of its sequences: a state, outputs and a
// workspace of their own.
class SwapFfnLane {
 public:
  struct Bits {
    std::vector<std::byte> delta, ram, map;  // delta: of all steps
  };

  // desc: of the experiment's plan. keep: states and decisions.
  SwapFfnLane(SwapFfnExperiment& experiment, const SwapFfnDesc& desc, std::int64_t batch, bool keep, int steps = 1);

  // Back to the experiment's state, with its x; all that steps write is poisoned.
  void begin();
  // Enqueues the next step on `stream`; nothing is poisoned between it and the one before. Behind the last place for a
  // delta comes the first again.
  void enqueue();
  // The next step alone, with states, decisions and the workspace poisoned before.
  void step();

  // Of what has run; looks at the canaries.
  Bits bits();
  // The check of the last step(): no violation, nothing wrong. whole: the relative L2 too, where it says something.
  void expect_right(bool whole) const;
  double state(std::int64_t slice, std::int64_t row, std::int64_t column) const;

  std::int64_t rows() const { return batch_ * desc_.cores; }
  Guarded& delta() { return deltas_[step_]; }  // of the last step
  Guarded ram, map;
  Stream stream;

 private:
  std::int64_t row_bytes() const;
  SwapFfnArgs args();

  SwapFfnExperiment& experiment_;
  SwapFfnDesc desc_;
  std::int64_t batch_;
  bool keep_;
  std::vector<Guarded> deltas_;
  std::size_t step_ = 0;  // the last
  Guarded states_, decisions_, workspace_;
  Guarded ram_before_, map_before_;
};

// Of sequences of one core: byte for byte; or but for one sequence.
void expect_same_bits(const SwapFfnLane::Bits& one, const SwapFfnLane::Bits& other);
void expect_same_bits_but_for(std::int64_t sequence, std::int64_t batch, const SwapFfnLane::Bits& one,
                              const SwapFfnLane::Bits& other);

// The same step again and again, on a stream of its own, each time from the same state, which is put back on the
// device, and compared there with what the first one left. Rows are a multiple of 4.
class SwapFfnRepeats {
 public:
  SwapFfnRepeats(SwapFfnExperiment& experiment, const SwapFfnDesc& desc, std::int64_t batch);

  // May be captured.
  void enqueue();
  // Waits. Words of delta, ram and the map that differed so far; looks at the canaries.
  std::uint64_t differing_words();
  const Stream& stream() const { return lane_.stream; }

 private:
  SwapFfnLane lane_;
  SwapFfnLane::Bits first_;
  Allocation ram_before_, map_before_;
  Differences of_delta_, of_ram_, of_map_;
};

}  // namespace gatefold::test
