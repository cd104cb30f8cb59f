#include "cli/swap_ffn_gemms.hpp"

#include <algorithm>

#include "cli/random.hpp"

namespace gatefold::cli {
namespace {

Plan gemm(const SwapFfnDesc& c, std::int64_t depth, std::int64_t columns) {
  return Plan({.op = GATEFOLD_OP_GEMM,
               .dtype = c.dtype,
               .device = c.device,
               .hidden_size = depth,
               .intermediate_size = columns});
}

DeviceBuffer weight(const SwapFfnData& data, Backend& backend, const char* name) {
  const Bytes& values = data.weight(name);
  return DeviceBuffer::of(backend, {values.data(), values.size()});
}

// Normal numbers: what a product takes depends on its values.
DeviceBuffer drawn(Backend& backend, gatefold_dtype dtype, std::int64_t count, std::uint64_t seed) {
  Bytes values(static_cast<std::size_t>(count * size_of(dtype)));
  fill_random(values.data(), dtype, count, Distribution::normal(1.0), seed);
  DeviceBuffer buffer(backend, values.size());
  backend.upload(buffer.writable(), {values.data(), values.size()});
  return buffer;
}

}  // namespace

SwapFfnGemms::SwapFfnGemms(const SwapFfnData& data, Backend& backend)
    : data_(data),
      backend_(backend),
      wide_(gemm(data.desc(), data.desc().hidden_size, data.desc().intermediate_size)),
      narrow_(gemm(data.desc(), data.desc().intermediate_size, data.desc().hidden_size)),
      workspace_bytes_(std::max(wide_.workspace_size(data.rows()), narrow_.workspace_size(data.rows()))),
      gate_w_(weight(data, backend, "gate_w")),
      up_w_(weight(data, backend, "up_w")),
      down_w_(weight(data, backend, "down_w")) {
  const SwapFfnDesc& c = data.desc();
  workspace_ = DeviceBuffer(backend, workspace_bytes_);
  n_ = drawn(backend, c.dtype, data.rows() * c.hidden_size, random_bits(1, 200));
  gate_ = drawn(backend, c.dtype, data.rows() * c.intermediate_size, random_bits(1, 201));
  const auto bytes = [&](std::int64_t columns) {
    return static_cast<std::size_t>(data.rows() * columns * size_of(c.dtype));
  };
  up_ = DeviceBuffer(backend, bytes(c.intermediate_size));
  s_ = DeviceBuffer(backend, bytes(c.hidden_size));
}

void SwapFfnGemms::enqueue() const {
  const auto run = [&](const Plan& plan, const DeviceBuffer& x, const DeviceBuffer& w, const DeviceBuffer& out) {
    plan.run({.tokens = data_.rows(),
              .x = x.data(),
              .up = w.data(),
              .out = out.writable(),
              .workspace = {workspace_.writable(), workspace_bytes_},
              .stream = backend_.stream()});
  };
  const SwapFfnDesc& c = data_.desc();
  for (std::int64_t mlp = 0; mlp < c.events * c.k_ffn; ++mlp) {
    run(wide_, n_, gate_w_, up_);
    run(wide_, n_, up_w_, up_);
    run(narrow_, gate_, down_w_, s_);
  }
}

}  // namespace gatefold::cli
