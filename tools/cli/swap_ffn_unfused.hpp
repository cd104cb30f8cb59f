#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/backend.hpp"
#include "cli/swap_ffn_data.hpp"
#include "cli/swap_ffn_job.hpp"

namespace gatefold::cli {

// One pass of a step: a product, or a loop or kernel over whole tensors.
struct UnfusedPass {
  std::string name;
  std::int64_t rows = 0, columns = 0, depth = 0;  // depth: of products
  double flops = 0.0;
  double bytes = 0.0;
  std::function<void()> run;
};

// The step as frameworks run it: every operation of its definition a pass of its own, with a tensor of the element type
// behind it. Norms are not folded into weights. On the CPU the products are the library's gemm, on CUDA cuBLASLt's.
class UnfusedSwapFfn {
 public:
  UnfusedSwapFfn() = default;
  virtual ~UnfusedSwapFfn() = default;
  UnfusedSwapFfn(const UnfusedSwapFfn&) = delete;
  UnfusedSwapFfn& operator=(const UnfusedSwapFfn&) = delete;

  // In the order in which a step runs them; those of an event stand there once for each event.
  const std::vector<UnfusedPass>& passes() const { return passes_; }
  void step() const {
    for (const UnfusedPass& pass : passes_) pass.run();
  }
  virtual Bytes delta() const = 0;  // of the last step, once it is done

 protected:
  // The passes of one step over so many rows, from those that a device's way has.
  struct Parts {
    std::function<void()> start, event, mlp, collapse;  // each adds its passes
  };
  static void add_step(const SwapFfnDesc& desc, const Parts& parts);
  static UnfusedPass product_pass(const std::string& name, gatefold_dtype dtype, std::int64_t rows,
                                  std::int64_t columns, std::int64_t depth, std::function<void()> run);

  std::vector<UnfusedPass> passes_;
};

// On x, ram and stream_map of the data, or on CUDA on copies of them as they are now.
std::unique_ptr<UnfusedSwapFfn> make_unfused_swap_ffn(SwapFfnData& data, Backend& backend);
std::unique_ptr<UnfusedSwapFfn> make_unfused_swap_ffn_on_cuda(const SwapFfnData& data, Backend& backend);

// One step of each from equal states: the relative L2 between the two results. Both compute the same thing, so that it
// is rounding, and a core that decided otherwise near a threshold; 1 and more would be another computation.
double apart_after_a_step(SwapFfnJob& job, const SwapFfnData& data, const UnfusedSwapFfn& unfused, Backend& backend);

}  // namespace gatefold::cli
