#pragma once

#include <algorithm>
#include <cmath>

#include "cuda/sm90/chain.cuh"

namespace gatefold::cuda::sm90 {

template <class E>
struct ChainGateUp : Shape<tile_128x256, E, Product::gate_up> {
  using Loads = ProducerOfSettledWeights<ChainGateUp::config, E>;
  using Epilogue = ChainGateUpEpilogue<ChainGateUp::config, E>;
};

template <class E>
struct ChainDown : Shape<split_128x64, E, Product::plain> {
  using Loads = ProducerOfSettledWeights<ChainDown::config, E>;
  using Epilogue = ChainDownEpilogue<ChainDown::config, E>;
};

template <class E>
struct ChainLaunch {
  using GateUp = ChainGateUp<E>;
  using Down = ChainDown<E>;
  static constexpr auto* kernel = chain_kernel<GateUp, Down>;
  static constexpr int cluster = GateUp::config.cluster();

  static LaunchShape shape(int clusters) {
    return {.grid = dim3(static_cast<unsigned>(clusters * cluster)),
            .block = dim3(GateUp::config.threads()),
            .shared_bytes = sizeof(ChainStorage<GateUp, Down>),
            .cluster = cluster,
            .early = true,
            .cooperative = true};
  }

  static Status resident_clusters(const DeviceProperties& device, int& clusters) {
    static ResidentClusters resident;
    return resident(kernel, shape(device.multiprocessors / cluster), device.index, clusters);
  }

  // Of one tile of either product at most, each.
  static int clusters(const Problem& gate_up, const Problem& down, std::int64_t rows, int resident) {
    return clusters_of(geometry_of(GateUp::config, gate_up, rows, resident),
                       geometry_of(Down::config, down, rows, resident));
  }
  static int clusters_of(const Geometry& gate_up, const Geometry& down) {
    return std::max(gate_up.work_tiles(GateUp::config), down.work_tiles(Down::config));
  }

  static Status launch(const Chain& chain, const DeviceProperties& device, cudaStream_t stream) {
    int resident = 0;
    if (Status status = resident_clusters(device, resident); !status.ok()) return status;
    ChainArguments<GateUp, Down> arguments;
    arguments.take_from_environment();
    arguments.gate_up.geometry = geometry_of(GateUp::config, chain.gate_up, chain.gate_up_run.tokens, resident);
    arguments.down.geometry = geometry_of(Down::config, chain.down, chain.down_run.tokens, resident);
    const Status gate_up = encode<GateUp>(chain.gate_up, chain.gate_up_run, arguments.gate_up);
    if (!gate_up.ok()) return gate_up;
    const Status down = encode<Down>(chain.down, chain.down_run, arguments.down);
    if (!down.ok()) return down;
    const auto columns = static_cast<double>(chain.gate_up.hidden_size);
    arguments.state = chain.state;
    arguments.inverse_rms = chain.inverse_rms;
    arguments.eps_squares = chain.eps * columns;
    arguments.root_of_columns = static_cast<float>(std::sqrt(columns));
    arguments.first_mlp = chain.first_mlp;
    arguments.mlps = chain.mlps;
    const int clusters = clusters_of(arguments.gate_up.geometry, arguments.down.geometry);
    return launch_kernel(kernel, shape(clusters), device.index, stream, arguments);
  }

  static constexpr ChainKernel functions{resident_clusters, clusters, launch};
};

}  // namespace gatefold::cuda::sm90
