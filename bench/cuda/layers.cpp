#include "layers.hpp"

#include <memory>

#include "replay.hpp"

namespace gatefold::bench {

Layer::Layer(const Model& m, std::uint64_t seed)
    : gate_up(static_cast<std::size_t>(m.weight_bytes() / 3 * 2)),
      down(static_cast<std::size_t>(m.weight_bytes() / 3)) {
  gate_up.fill_normal(GATEFOLD_DTYPE_BF16, seed);
  down.fill_normal(GATEFOLD_DTYPE_BF16, seed + 1);
}

std::vector<Layer> layers_of(const Model& m) {
  std::vector<Layer> layers;
  for (int i = 0; i < m.layers(); ++i) layers.emplace_back(m, 100 + 2 * static_cast<std::uint64_t>(i));
  return layers;
}

Provider through_layers(const std::string& name, const std::vector<Layer>& layers,
                        const std::function<void(const Layer&, cudaStream_t)>& one) {
  const auto replay = std::make_shared<Replay>([&](cudaStream_t stream) {
    for (const Layer& layer : layers) one(layer, stream);
  });
  return {name, [replay](int /*call*/, cudaStream_t stream) { replay->launch(stream); }};
}

}  // namespace gatefold::bench
