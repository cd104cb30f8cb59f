// Swap-FFN in C++20: swap_ffn.h with types, ownership and exceptions. Header-only, over the C interface.
//
//     const gatefold::SwapFfn step({.dtype = GATEFOLD_DTYPE_BF16, .device = GATEFOLD_DEVICE_CPU});
//     gatefold::Workspace prepared(step.prepared_size());
//     step.prepare(weights, prepared);
//     gatefold::Workspace workspace(step.workspace_size(batch));
//     step.run({.batch = batch, .prepared = prepared, .x = x, .ram = ram, .stream_map = map, .delta = delta,
//               .workspace = workspace});
#ifndef GATEFOLD_SWAP_FFN_HPP
#define GATEFOLD_SWAP_FFN_HPP

#include "gatefold/gatefold.hpp"
#include "gatefold/swap_ffn.h"

namespace gatefold::inline v0 {

struct SwapFfnDesc {
  gatefold_dtype dtype{};
  gatefold_device device{};
  std::int64_t hidden_size = 1024;
  std::int64_t intermediate_size = 4096;
  std::int64_t cores = 512;
  std::int64_t core_embed_size = 32;
  std::int64_t router_width = 64;
  std::int64_t collapse_heads = 8;
  std::int64_t collapse_width = 224;
  std::int64_t events = 8;
  std::int64_t k_ffn = 2;
  double eps = 1e-6;
  const char* implementation = nullptr;  // a name that outlives this, or null: Gatefold chooses

  gatefold_swap_ffn_desc c_desc() const {
    gatefold_swap_ffn_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = dtype;
    desc.device = device;
    desc.hidden_size = hidden_size;
    desc.intermediate_size = intermediate_size;
    desc.cores = cores;
    desc.core_embed_size = core_embed_size;
    desc.router_width = router_width;
    desc.collapse_heads = collapse_heads;
    desc.collapse_width = collapse_width;
    desc.events = events;
    desc.k_ffn = k_ffn;
    desc.eps = eps;
    desc.implementation = implementation;
    return desc;
  }
};

struct SwapFfnArgs {
  std::int64_t batch = 0;
  WorkspaceView prepared{};
  const void* x = nullptr;
  void* ram = nullptr;
  std::uint8_t* stream_map = nullptr;
  void* delta = nullptr;
  WorkspaceView workspace{};
  void* stream = nullptr;
  void* states = nullptr;
  std::uint8_t* decisions = nullptr;
  double* pass_seconds = nullptr;

  gatefold_swap_ffn_args c_args() const {
    gatefold_swap_ffn_args args{};
    args.struct_size = sizeof args;
    args.batch = batch;
    args.prepared = prepared.data;
    args.x = x;
    args.ram = ram;
    args.stream_map = stream_map;
    args.delta = delta;
    args.workspace = workspace.data;
    args.workspace_size = workspace.size;
    args.stream = stream;
    args.states = states;
    args.decisions = decisions;
    args.pass_seconds = pass_seconds;
    return args;
  }
};

// An immutable plan; threads may share it.
class SwapFfn {
 public:
  // Throws Error, as every function here does.
  explicit SwapFfn(const SwapFfnDesc& desc) {
    const gatefold_swap_ffn_desc c_desc = desc.c_desc();
    gatefold_swap_ffn_plan* plan = nullptr;
    throw_on_error(gatefold_swap_ffn_plan_create(&c_desc, &plan));
    plan_.reset(plan);
  }

  std::size_t prepared_size() const {
    std::size_t bytes = 0;
    throw_on_error(gatefold_swap_ffn_prepared_size(plan_.get(), &bytes));
    return bytes;
  }

  void prepare(const gatefold_swap_ffn_weights& weights, WorkspaceView prepared, void* stream = nullptr) const {
    throw_on_error(gatefold_swap_ffn_prepare(plan_.get(), &weights, prepared.data, prepared.size, stream));
  }

  std::size_t workspace_size(std::int64_t max_batch) const {
    std::size_t bytes = 0;
    throw_on_error(gatefold_swap_ffn_workspace_size(plan_.get(), max_batch, &bytes));
    return bytes;
  }

  void run(const SwapFfnArgs& args) const {
    const gatefold_swap_ffn_args c_args = args.c_args();
    throw_on_error(gatefold_swap_ffn_step(plan_.get(), &c_args));
  }

  // The passes of a step; their names are valid as long as this plan.
  std::vector<gatefold_swap_ffn_pass_info> passes(std::int64_t batch) const {
    std::vector<gatefold_swap_ffn_pass_info> all;
    gatefold_swap_ffn_pass_info pass{};
    while (gatefold_swap_ffn_pass(plan_.get(), batch, static_cast<int>(all.size()), &pass) != 0) all.push_back(pass);
    return all;
  }

 private:
  struct Destroy {
    void operator()(gatefold_swap_ffn_plan* plan) const { gatefold_swap_ffn_plan_destroy(plan); }
  };
  std::unique_ptr<gatefold_swap_ffn_plan, Destroy> plan_;
};

}  // namespace gatefold::inline v0

#endif
