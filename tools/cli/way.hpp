#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "cli/stage.hpp"
#include "cli/timing.hpp"

// Ways to compute an op of the block: stages one after the other.
namespace gatefold::cli {

struct Way {
  Way() = default;
  Way(gatefold_op op, std::string provider, std::vector<StagePtr> stages);

  gatefold_op op{};
  std::string provider{};
  std::vector<StagePtr> stages{};

  // Of all stages.
  Cost cost{};
  std::int64_t bytes_intermediate = 0;  // written to memory besides the op's output

  std::string implementation() const;  // of each stage, where they differ
  std::size_t workspace_size() const;
  void enqueue(const Tensors& tensors, Backend& backend) const {
    for (const StagePtr& stage : stages) stage->enqueue(tensors, backend);
  }
};

// A provider computes an op in its own way; the benchmark baselines of a device are more entries of this list.
struct Provider {
  std::string name;
  // Empty where the provider has no way of its own to compute the op, or the layout is not for it.
  std::function<std::optional<Way>(gatefold_op op, const Block& block)> make;
};
const std::vector<Provider>& providers(gatefold_device device);
const Provider& find_provider(gatefold_device device, const std::string& name);  // throws checkpoint::InputError

// The ways to h that `run` shows, from none of it fused to all of it: eager, unfused, gemm_gated (where the layout has
// strided halves), gate_up. The first two share their products' stages.
std::vector<Way> ways_to_h(const Block& block);

// The down projection alone, y = h . w_down^T.
Way down_way(const Block& block);

// DESIGN's row of a result. Baselines may be null.
struct Baselines {
  const Samples* unfused = nullptr;
  const Samples* gemm_only = nullptr;
};
Json result_row(const Way& way, const Block& block, const std::string& model, const Samples& samples,
                const Baselines& baselines);

}  // namespace gatefold::cli
