#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "device_buffer.hpp"
#include "models.hpp"
#include "rounds.hpp"

namespace gatefold::bench {

// Random weights in bf16: gate's rows and then up's, [2 F, D], and down's, [D, F].
struct Layer {
  DeviceBuffer gate_up, down;

  Layer(const Model& m, std::uint64_t seed);
};

// As many as the model wants to be measured from memory.
std::vector<Layer> layers_of(const Model& m);

// One call goes through all layers, in a CUDA graph of what `one` enqueues for each. They must outlive it.
Provider through_layers(const std::string& name, const std::vector<Layer>& layers,
                        const std::function<void(const Layer&, cudaStream_t)>& one);

}  // namespace gatefold::bench
