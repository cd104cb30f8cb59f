#pragma once

#include "cli/backend.hpp"
#include "cli/swap_ffn_data.hpp"

namespace gatefold::cli {

// What a step leaves behind beside its results, in host memory; each may be null.
struct SwapFfnKept {
  std::byte* states = nullptr;
  std::uint8_t* decisions = nullptr;
  double* pass_seconds = nullptr;
};

// A plan with all that its steps need, on the memory of its backend: where that isn't the host's, with copies of x, ram
// and stream_map.
class SwapFfnJob {
 public:
  SwapFfnJob(SwapFfnData& data, Backend& backend);

  // On x, ram and stream_map of the data; ram and stream_map are updated, and delta is filled in.
  void step(const SwapFfnKept& kept = {});

  // The same in parts: to the device; any number of steps from what is there, enqueued; and back.
  void upload();
  void enqueue(double* pass_seconds = nullptr);
  void download();

  const SwapFfn& plan() const { return plan_; }
  Bytes delta;

 private:
  DeviceBuffer buffer(std::size_t bytes) const;  // none on the host
  SwapFfnArgs args() const;

  SwapFfnData& data_;
  Backend& backend_;
  SwapFfn plan_;
  DeviceBuffer prepared_, workspace_;
  DeviceBuffer x_, ram_, stream_map_, delta_, states_, decisions_;
};

}  // namespace gatefold::cli
