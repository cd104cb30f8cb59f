#include "model_sizes.hpp"

#include "checkpoint/presets.hpp"

namespace gatefold::test {

std::vector<ModelSize> model_sizes() {
  std::vector<ModelSize> sizes;
  for (const checkpoint::Preset& preset : checkpoint::presets()) {
    sizes.push_back({preset.name, preset.hidden_size, preset.intermediate_size});
  }
  return sizes;
}

}  // namespace gatefold::test
