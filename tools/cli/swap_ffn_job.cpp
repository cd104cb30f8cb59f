#include "cli/swap_ffn_job.hpp"

namespace gatefold::cli {
namespace {

std::span<const std::byte> bytes_of(const Bytes& values) { return {values.data(), values.size()}; }
std::span<const std::byte> bytes_of(const std::vector<std::uint8_t>& values) {
  return std::as_bytes(std::span(values));
}

WorkspaceView view(const DeviceBuffer& buffer, std::size_t bytes) { return {buffer.writable(), bytes}; }

}  // namespace

SwapFfnJob::SwapFfnJob(SwapFfnData& data, Backend& backend)
    : delta(data.x.size()),
      data_(data),
      backend_(backend),
      plan_(data.desc()),
      prepared_(backend, plan_.prepared_size()),
      workspace_(backend, plan_.workspace_size(data.batch())),
      x_(buffer(data.x.size())),
      ram_(buffer(data.ram.size())),
      stream_map_(buffer(data.stream_map.size())),
      delta_(buffer(data.x.size())) {
  std::vector<DeviceBuffer> weights;
  std::vector<const void*> pointers;
  for (const std::span<const std::byte> weight : data.weight_bytes()) {
    weights.push_back(DeviceBuffer::of(backend, weight));
    pointers.push_back(weights.back().data());
  }
  plan_.prepare(weights_struct(pointers), view(prepared_, plan_.prepared_size()), backend.stream());
  backend.synchronise();  // before the weights go
  upload();
}

DeviceBuffer SwapFfnJob::buffer(std::size_t bytes) const {
  return backend_.uses_host_memory() ? DeviceBuffer() : DeviceBuffer(backend_, bytes);
}

SwapFfnArgs SwapFfnJob::args() const {
  SwapFfnArgs args;
  args.batch = data_.batch();
  args.prepared = view(prepared_, plan_.prepared_size());
  args.workspace = view(workspace_, plan_.workspace_size(data_.batch()));
  args.stream = backend_.stream();
  if (backend_.uses_host_memory()) {
    args.x = data_.x.data();
    args.ram = data_.ram.data();
    args.stream_map = data_.stream_map.data();
  } else {
    args.x = x_.data();
    args.ram = ram_.writable();
    args.stream_map = reinterpret_cast<std::uint8_t*>(stream_map_.writable());
    args.delta = delta_.writable();
  }
  return args;
}

void SwapFfnJob::upload() {
  if (backend_.uses_host_memory()) return;
  backend_.upload(x_.writable(), bytes_of(data_.x));
  backend_.upload(ram_.writable(), bytes_of(data_.ram));
  backend_.upload(stream_map_.writable(), bytes_of(data_.stream_map));
}

void SwapFfnJob::enqueue(double* pass_seconds) {
  SwapFfnArgs step = args();
  if (backend_.uses_host_memory()) step.delta = delta.data();
  step.pass_seconds = pass_seconds;
  plan_.run(step);
}

void SwapFfnJob::download() {
  if (backend_.uses_host_memory()) return;
  backend_.download({delta.data(), delta.size()}, delta_.data());
  backend_.download({data_.ram.data(), data_.ram.size()}, ram_.data());
  backend_.download(std::as_writable_bytes(std::span(data_.stream_map)), stream_map_.data());
}

void SwapFfnJob::step(const SwapFfnKept& kept) {
  upload();
  SwapFfnArgs step = args();
  step.pass_seconds = kept.pass_seconds;
  const SwapFfnDesc& desc = data_.desc();
  const auto state_bytes =
      static_cast<std::size_t>(1 + desc.events * desc.k_ffn) * (data_.ram.size() / GATEFOLD_SWAP_FFN_BANKS);
  const auto decision_bytes = static_cast<std::size_t>(desc.events * data_.rows());
  if (backend_.uses_host_memory()) {
    step.delta = delta.data();
    step.states = kept.states;
    step.decisions = kept.decisions;
  } else {
    if (kept.states != nullptr && states_.data() == nullptr) states_ = buffer(state_bytes);
    if (kept.decisions != nullptr && decisions_.data() == nullptr) decisions_ = buffer(decision_bytes);
    if (kept.states != nullptr) step.states = states_.writable();
    if (kept.decisions != nullptr) step.decisions = reinterpret_cast<std::uint8_t*>(decisions_.writable());
  }
  plan_.run(step);
  download();
  if (backend_.uses_host_memory()) return;
  if (kept.states != nullptr) backend_.download({kept.states, state_bytes}, states_.data());
  if (kept.decisions != nullptr) {
    backend_.download(std::as_writable_bytes(std::span(kept.decisions, decision_bytes)), decisions_.data());
  }
}

}  // namespace gatefold::cli
