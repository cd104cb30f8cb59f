#include "cli/numerics.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/block_memory.hpp"
#include "cli/element.hpp"
#include "cli/random.hpp"

namespace gatefold::cli {
namespace {

// From this size on only a sample is checked: 256 rows, the last 128 among them, and 384 columns, the last 256 among
// them. No tile of any kernel is larger.
constexpr std::int64_t largest_whole = 1024;
constexpr std::int64_t sampled_spread = 128;
constexpr std::int64_t last_rows = 128;
constexpr std::int64_t last_columns = 256;

template <class Element>
Difference difference_of(std::span<const std::byte> a, std::span<const std::byte> b) {
  using Stored = typename Element::Stored;
  const auto* p = reinterpret_cast<const Stored*>(a.data());
  const auto* q = reinterpret_cast<const Stored*>(b.data());
  const auto count = static_cast<std::int64_t>(a.size() / sizeof(Stored));
  double largest = 0.0;
  double sum = 0.0;
  double squares = 0.0;
  double reference = 0.0;
  std::int64_t not_finite = 0;
#pragma omp parallel for reduction(max : largest) reduction(+ : sum, squares, reference, not_finite)
  for (std::int64_t i = 0; i < count; ++i) {
    const double theirs = Element::load(q[i]);
    const double apart = std::abs(Element::load(p[i]) - theirs);
    not_finite += std::isfinite(apart) ? 0 : 1;  // max() would swallow a NaN
    largest = std::max(largest, apart);
    sum += apart;
    squares += apart * apart;
    reference += theirs * theirs;
  }
  if (count == 0) return {};
  if (not_finite != 0) largest = std::numeric_limits<double>::quiet_NaN();
  return {largest, sum / static_cast<double>(count), squares == 0.0 ? 0.0 : std::sqrt(squares / reference)};
}

// `spread` indices over the whole range, evenly, and the last ones.
std::vector<std::int64_t> sample(std::int64_t size, std::int64_t spread, std::int64_t last) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < spread; ++i) indices.push_back(i * (size - last) / spread);
  for (std::int64_t i = size - last; i < size; ++i) indices.push_back(i);
  return indices;
}

std::vector<std::byte> draw(const Block& block, std::int64_t rows, std::uint64_t seed) {
  std::vector<std::byte> data(block.bytes(rows, block.hidden_size));
  fill_random(data.data(), block.dtype, rows * block.hidden_size, Distribution::kaiming_uniform(block.hidden_size),
              seed);
  return data;
}

// A half's bias as torch.nn.Linear draws it; nothing where the block has none.
std::vector<std::byte> draw_bias(const Block& block, bool used, std::int64_t count, std::uint64_t seed) {
  std::vector<std::byte> data(used ? block.bytes(count, 1) : 0);
  if (used) fill_random(data.data(), block.dtype, count, Distribution::kaiming_uniform(block.hidden_size), seed);
  return data;
}

const std::byte* data_or_null(const std::vector<std::byte>& data) { return data.empty() ? nullptr : data.data(); }

}  // namespace

Difference difference(std::span<const std::byte> a, std::span<const std::byte> b, gatefold_dtype dtype) {
  return with_element(dtype, [&](auto element) { return difference_of<decltype(element)>(a, b); });
}

RandomBlock::RandomBlock(Backend& backend, const Block& block, std::uint64_t seed)
    : backend_(backend),
      block_(block),
      x_(draw(block, block.tokens, random_bits(seed, 0))),
      gate_(draw(block, block.layout.packed() ? 2 * block.intermediate_size : block.intermediate_size,
                 random_bits(seed, 1))),
      up_(draw(block, block.layout.packed() ? 0 : block.intermediate_size, random_bits(seed, 2))),
      gate_bias_(draw_bias(block, block.biases.gate,
                           block.layout.packed() ? 2 * block.intermediate_size : block.intermediate_size,
                           random_bits(seed, 3))),
      up_bias_(draw_bias(block, block.biases.up, block.intermediate_size, random_bits(seed, 4))),
      device_x_(DeviceBuffer::of(backend, x_)),
      device_gate_(DeviceBuffer::of(backend, gate_)),
      device_up_(DeviceBuffer::of(backend, up_)),
      device_gate_bias_(DeviceBuffer::of(backend, gate_bias_)),
      device_up_bias_(DeviceBuffer::of(backend, up_bias_)) {}

Tensors RandomBlock::host() const {
  Tensors tensors;
  tensors.x = x_.data();
  tensors.w_gate = gate_.data();
  tensors.w_up = block_.layout.packed() ? nullptr : up_.data();
  tensors.b_gate = data_or_null(gate_bias_);
  tensors.b_up = data_or_null(up_bias_);
  return tensors;
}

std::vector<std::byte> RandomBlock::compute(const Way& way) const {
  const bool products = way.bytes_intermediate != 0;
  const BlockMemory memory(backend_, block_, {products, false, true, false}, way.workspace_size());
  Tensors inputs;
  inputs.x = device_x_.data();
  inputs.w_gate = device_gate_.data();
  inputs.w_up = block_.layout.packed() ? nullptr : device_up_.data();
  inputs.b_gate = block_.biases.gate ? device_gate_bias_.data() : nullptr;
  inputs.b_up = block_.biases.up ? device_up_bias_.data() : nullptr;
  const Tensors tensors = memory.tensors(inputs);
  way.enqueue(tensors, backend_);
  backend_.synchronise();
  std::vector<std::byte> h(block_.h_bytes());
  backend_.download(h, tensors.h);
  return h;
}

SampledCheck::SampledCheck(const RandomBlock& data)
    : block_(data.block()), sampled_(block_.tokens > largest_whole), inputs_(data.host()) {
  if (!sampled_) return;
  rows_ = sample(block_.tokens, sampled_spread, last_rows);
  columns_ = sample(block_.intermediate_size, sampled_spread, last_columns);
  // Of every layout the sampled halves come out as separate tensors.
  Indices gate_rows;
  Indices up_rows;
  for (const std::int64_t column : columns_) {
    gate_rows.push_back(weight_row(block_, false, column));
    up_rows.push_back(weight_row(block_, true, column));
  }
  const std::byte* up_from = block_.layout.packed() ? inputs_.w_gate : inputs_.w_up;
  x_ = gather(inputs_.x, block_.hidden_size, rows_);
  gate_ = gather(inputs_.w_gate, block_.hidden_size, gate_rows);
  up_ = gather(up_from, block_.hidden_size, up_rows);
  const std::byte* up_bias_from = block_.layout.packed() ? inputs_.b_gate : inputs_.b_up;
  if (has_half_bias(block_, false)) gate_bias_ = gather(inputs_.b_gate, 1, gate_rows);
  if (has_half_bias(block_, true)) up_bias_ = gather(up_bias_from, 1, up_rows);
}

std::vector<std::byte> SampledCheck::gather(const std::byte* from, std::int64_t ld, const Indices& rows) const {
  const std::size_t bytes = block_.bytes(1, ld);
  std::vector<std::byte> gathered(rows.size() * bytes);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(gathered.data() + i * bytes, from + static_cast<std::size_t>(rows[i]) * bytes, bytes);
  }
  return gathered;
}

gatefold_error_report SampledCheck::operator()(std::span<const std::byte> h) const {
  Desc desc{.op = GATEFOLD_OP_GATE_UP, .dtype = block_.dtype, .device = GATEFOLD_DEVICE_CPU};
  desc.layout = sampled_ ? Layout::separate() : block_.layout;
  desc.activation = block_.activation;
  desc.hidden_size = block_.hidden_size;
  desc.intermediate_size = sampled_ ? static_cast<std::int64_t>(columns_.size()) : block_.intermediate_size;
  desc.biases = block_.biases;
  if (sampled_) desc.biases = {.gate = has_half_bias(block_, false), .up = has_half_bias(block_, true)};
  Args args{.tokens = block_.tokens,
            .x = inputs_.x,
            .gate = inputs_.w_gate,
            .up = inputs_.w_up,
            .gate_bias = inputs_.b_gate,
            .up_bias = inputs_.b_up};
  std::vector<std::byte> picked;
  if (sampled_) {
    args = {.tokens = static_cast<std::int64_t>(rows_.size()),
            .x = x_.data(),
            .gate = gate_.data(),
            .up = up_.data(),
            .gate_bias = data_or_null(gate_bias_),
            .up_bias = data_or_null(up_bias_)};
    const auto element = static_cast<std::size_t>(block_.element());
    picked.resize(rows_.size() * columns_.size() * element);
    std::byte* to = picked.data();
    for (const std::int64_t row : rows_) {
      for (const std::int64_t column : columns_) {
        const std::int64_t index = row * block_.intermediate_size + column;
        std::memcpy(to, h.data() + static_cast<std::size_t>(index) * element, element);
        to += element;
      }
    }
  }
  args.out = sampled_ ? picked.data() : const_cast<std::byte*>(h.data());
  return gatefold::check(desc, args, GATEFOLD_DATA_ZERO_MEAN);
}

}  // namespace gatefold::cli
