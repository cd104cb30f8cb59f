#include "cli/bench_data.hpp"

#include <algorithm>
#include <cmath>

#include "cli/random.hpp"

namespace gatefold::cli {
namespace {

// Of act_and_mul's operands. So many that are still smaller than the cache lie in a model's cache too.
constexpr std::int64_t most_sets_of_operands = 64;

// Sets of this size that are together four times as large as the cache: one that doesn't evict what was used longest
// ago would keep some of twice its size.
std::int64_t sets_to_pass_cache(const Backend& backend, std::size_t bytes) {
  return static_cast<std::int64_t>(4 * backend.cache_bytes() / std::max<std::size_t>(bytes, 1)) + 1;
}

std::int64_t sets_of_weights(const Backend& backend, std::size_t bytes) {
  const auto fitting = static_cast<std::int64_t>(backend.memory_to_use() / std::max<std::size_t>(bytes, 1));
  return std::max<std::int64_t>(std::min(sets_to_pass_cache(backend, bytes), fitting), 1);
}

DeviceBuffer copy_of(Backend& backend, const DeviceBuffer& original, std::size_t bytes) {
  DeviceBuffer buffer(backend, bytes);
  backend.copy(buffer.writable(), original.data(), bytes);
  return buffer;
}

// Draws the first millions, and repeats them: timing needs data that look random, not data that never repeat.
void fill_normal(Backend& backend, std::byte* data, gatefold_dtype dtype, std::int64_t count, double deviation,
                 std::uint64_t seed) {
  constexpr std::int64_t most_drawn = std::int64_t{1} << 20;
  const auto total = static_cast<std::size_t>(count * size_of(dtype));
  std::vector<std::byte> drawn(std::min(total, static_cast<std::size_t>(most_drawn * size_of(dtype))));
  const auto elements = static_cast<std::int64_t>(drawn.size()) / size_of(dtype);
  fill_random(drawn.data(), dtype, elements, Distribution::normal(deviation), seed);
  backend.upload(data, drawn);
  for (std::size_t filled = drawn.size(); filled < total; filled = std::min(2 * filled, total)) {
    backend.copy(data + filled, data, std::min(filled, total - filled));
  }
}

// The library's mlp: what it has between its products lies in its workspace.
bool is_one_call(const Way& way) { return way.op == GATEFOLD_OP_MLP && way.stages.size() == 1; }

bool any_stage_writes_intermediates(const std::vector<Way>& ways) {
  return std::any_of(ways.begin(), ways.end(),
                     [](const Way& way) { return way.bytes_intermediate != 0 && !is_one_call(way); });
}

bool is_here(const std::vector<Way>& ways, const char* provider) {
  return std::any_of(ways.begin(), ways.end(), [&](const Way& way) { return way.provider == provider; });
}

}  // namespace

DeviceBuffer random_normal(Backend& backend, gatefold_dtype dtype, std::int64_t count, double deviation,
                           std::uint64_t seed) {
  DeviceBuffer buffer(backend, static_cast<std::size_t>(count * size_of(dtype)));
  fill_normal(backend, buffer.writable(), dtype, count, deviation, seed);
  return buffer;
}

RotatingWeights::RotatingWeights(Backend& backend, const Block& block, bool with_down, std::uint64_t seed) {
  const std::int64_t half = block.intermediate_size * block.hidden_size;
  const double D = static_cast<double>(std::max<std::int64_t>(block.hidden_size, 1));
  const double F = static_cast<double>(std::max<std::int64_t>(block.intermediate_size, 1));
  const bool packed = block.layout.packed();
  const std::size_t set_bytes = (with_down ? 3 : 2) * block.weight_bytes();
  const std::int64_t count = sets_of_weights(backend, set_bytes);
  const std::uint64_t base = random_bits(seed, 0);
  Set& first = sets_.emplace_back();
  first.gate = random_normal(backend, block.dtype, packed ? 2 * half : half, 1.0 / std::sqrt(D), base);
  if (!packed) first.up = random_normal(backend, block.dtype, half, 1.0 / std::sqrt(D), base + 1);
  if (with_down) first.down = random_normal(backend, block.dtype, half, 1.0 / std::sqrt(F), base + 2);
  // Caches tell addresses apart, not contents.
  const std::size_t bytes = block.weight_bytes();
  while (static_cast<std::int64_t>(sets_.size()) < count) {
    Set set;
    set.gate = copy_of(backend, sets_.front().gate, packed ? 2 * bytes : bytes);
    if (!packed) set.up = copy_of(backend, sets_.front().up, bytes);
    if (with_down) set.down = copy_of(backend, sets_.front().down, bytes);
    sets_.push_back(std::move(set));
  }
  bytes_ = sets_.size() * set_bytes;
}

Tensors RotatingWeights::of_call(std::int64_t call) const {
  const Set& set = sets_[static_cast<std::size_t>(call) % sets_.size()];
  Tensors tensors;
  tensors.w_gate = set.gate.data();
  tensors.w_up = set.up.data();
  tensors.w_down = set.down.data();
  return tensors;
}

BenchData::BenchData(Backend& backend, gatefold_op op, const Block& block, const std::vector<Way>& ways,
                     const RotatingWeights* weights, std::uint64_t seed)
    : weights_(weights) {
  const bool elementwise = op == GATEFOLD_OP_ACT_AND_MUL;
  const bool gate_is_given = elementwise || op == GATEFOLD_OP_GEMM_GATED;
  BlockMemory::Use use;
  use.gate_and_up = gate_is_given || op == GATEFOLD_OP_GEMM || any_stage_writes_intermediates(ways);
  use.activated = is_here(ways, "eager") || is_here(ways, "copy");
  use.h = !std::all_of(ways.begin(), ways.end(), is_one_call);
  use.y = op == GATEFOLD_OP_MLP;
  std::size_t workspace = 0;
  for (const Way& way : ways) workspace = std::max(workspace, way.workspace_size());

  const std::int64_t h_elements = block.tokens * block.intermediate_size;
  const std::int64_t sets =
      elementwise ? std::min(sets_to_pass_cache(backend, 3 * block.h_bytes()), most_sets_of_operands) : 1;
  if (!elementwise)
    x_ = random_normal(backend, block.dtype, block.tokens * block.hidden_size, 1.0, random_bits(seed, 0));
  for (std::int64_t i = 0; i < sets; ++i) {
    const BlockMemory& memory = memory_.emplace_back(backend, block, use, workspace);
    const Tensors t = memory.tensors({});
    const std::uint64_t base = random_bits(seed, static_cast<std::uint64_t>(i) + 1);
    if (gate_is_given) fill_normal(backend, t.gate, block.dtype, 2 * h_elements, 1.0, base);
    // The down projection of gemm-only reads an h that nobody computed for it.
    if (use.h) fill_normal(backend, t.h, block.dtype, h_elements, 1.0, base + 1);
  }
}

Tensors BenchData::of_call(std::int64_t call) const {
  Tensors inputs = weights_ == nullptr ? Tensors{} : weights_->of_call(call);
  inputs.x = x_.data();
  return memory_[static_cast<std::size_t>(call) % memory_.size()].tensors(inputs);
}

}  // namespace gatefold::cli
