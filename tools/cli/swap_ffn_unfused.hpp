#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/swap_ffn_data.hpp"

namespace gatefold::cli {

// One pass of a step: a product, or a loop over whole tensors.
struct UnfusedPass {
  std::string name;
  std::int64_t rows = 0, columns = 0, depth = 0;  // depth: of products
  double flops = 0.0;
  double bytes = 0.0;
  std::function<void()> run;
};

// The step as frameworks run it on the CPU: every operation of its definition a pass of its own, with a tensor of the
// element type behind it. The products are the library's gemm; norms are not folded into weights.
class UnfusedSwapFfn {
 public:
  explicit UnfusedSwapFfn(SwapFfnData& data);  // works on its x, ram and stream_map
  ~UnfusedSwapFfn();
  UnfusedSwapFfn(const UnfusedSwapFfn&) = delete;
  UnfusedSwapFfn& operator=(const UnfusedSwapFfn&) = delete;

  // In the order in which a step runs them; those of an event stand there once for each event.
  const std::vector<UnfusedPass>& passes() const { return passes_; }
  void step() const {
    for (const UnfusedPass& pass : passes_) pass.run();
  }
  const Bytes& delta() const;

  // The step's MLP products alone: gate, up and down, as often as a step has them.
  void products_alone() const;

 private:
  struct Tensors;
  void add_event();
  void add_mlp();
  void add_collapse();
  void add_product(const std::string& name, const Bytes& x, const Bytes& w, Bytes& out, std::int64_t rows,
                   std::int64_t columns, std::int64_t depth);
  void add_rows_pass(const std::string& name, double bytes, std::function<void()> run);

  std::unique_ptr<Tensors> t_;
  std::vector<UnfusedPass> passes_;
  std::vector<std::size_t> mlp_products_;
};

// One step of each from equal states: the relative L2 between the two results. Both compute the same thing, so that it
// is rounding, and a core that decided otherwise near a threshold; 1 and more would be another computation.
double apart_after_a_step(SwapFfnJob& job, SwapFfnData& data, const UnfusedSwapFfn& unfused);

}  // namespace gatefold::cli
