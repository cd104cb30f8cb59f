#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <gatefold/gatefold.hpp>
#include <string>
#include <vector>

#include "cublaslt.hpp"
#include "device_buffer.hpp"
#include "layers.hpp"

// A whole gated MLP in bf16, gate's and up's rows in one tensor, SiLU: by Gatefold and by the unfused chain.
namespace gatefold::bench {

// What the ways share, for the most tokens of a run.
struct Tensors {
  std::vector<Layer> layers;
  DeviceBuffer x, both, h, y, sink;

  Tensors(const Model& m, std::int64_t tokens);
};

// The op of bf16 with sums of `depth` terms; act_and_mul has none.
Desc desc_of(gatefold_op op, std::int64_t depth, std::int64_t columns);

inline constexpr const char* batch_invariant = "batch-invariant";

struct Ours {
  Plan mlp;
  DeviceBuffer workspace;

  // implementation: forced for both products, or as GATEFOLD_IMPL has it with a + between two, "" the library's own
  // choice, batch_invariant that of a plan by which a row's bits hang on nothing but the row. No other thread runs yet.
  Ours(const Model& m, std::int64_t tokens, const std::string& implementation);
  void enqueue(const Tensors& t, const Layer& layer, std::int64_t tokens, cudaStream_t stream) const;
};

// Frameworks' way: both projections in one product, the activation, the second product.
struct Unfused {
  CublasLtGemm gate_up, down;
  Plan act_and_mul;

  Unfused(const CublasLt& library, const Model& m, std::int64_t tokens);
  void tune(const Tensors& t);
  void enqueue_gate_up(const Tensors& t, const Layer& layer, std::int64_t tokens, cudaStream_t stream) const;  // h
  void enqueue(const Tensors& t, const Layer& layer, std::int64_t tokens, cudaStream_t stream) const;
};

}  // namespace gatefold::bench
