#include "cli/bench_plan.hpp"

#include <algorithm>

#include "checkpoint/input_error.hpp"
#include "checkpoint/presets.hpp"
#include "cli/peer.hpp"

namespace gatefold::cli {
namespace {

using Names = std::vector<std::string>;
using Sizes = std::vector<std::int64_t>;

Names default_models(gatefold_device device) {
  if (device == GATEFOLD_DEVICE_CPU) return {"smollm2-135m", "llama3.2-1b"};
  return {"llama3.1-8b", "llama3.1-70b", "llama3.1-405b"};
}

Sizes default_tokens(gatefold_device device) {
  if (device == GATEFOLD_DEVICE_CPU) return {1, 64, 512};
  return {512, 1024, 2048, 4096, 8192, 16384, 32768, 49152, 65536};
}

// One by name; "gatefold:NAME" is gatefold with that implementation forced, so that several stand side by side.
Provider provider_of(gatefold_device device, const std::string& name) {
  const Provider& plain = find_provider(device, name.substr(0, name.find(':')));
  if (plain.name == name) return plain;
  if (plain.name != "gatefold") {
    checkpoint::throw_input_error("--provider: \"", name, "\": only gatefold takes an implementation's name");
  }
  const std::string implementation = name.substr(plain.name.size() + 1);
  require_known_implementation(device, implementation);
  return {name, [=, &plain](gatefold_op op, Block block) -> std::optional<Way> {
            if (implementation_for(op, device, implementation).empty()) return {};
            block.implementation = implementation;
            std::optional<Way> way = plain.make(op, block);
            if (way) way->provider = name;
            return way;
          }};
}

}  // namespace

BenchPlan::BenchPlan(const BenchOptions& options)
    : device(parse_present_device(options.device)),
      dtype(parse_dtype(options.dtype)),
      layout(parse_layout(options.layout)),
      implementation(options.implementation),
      chunk(options.chunk),
      batch_invariant(options.batch_invariant),
      tokens(options.tokens.empty() ? default_tokens(device) : options.tokens) {
  options.output.validate();
  options.timing.validate();
  if (!(options.seconds >= 0.0)) checkpoint::throw_input_error("--seconds: ", options.seconds, " is less than 0");
  require_known_implementation(device, implementation);
  for (const std::string& op : options.ops) ops.push_back(parse_op(op));
  require_at_least("--chunk", chunk, 0);
  if (chunk > 0 && std::ranges::find(ops, GATEFOLD_OP_MLP) == ops.end()) {
    checkpoint::throw_input_error("--chunk: ", chunk, " tokens of an mlp, which is none of the ops");
  }
  for (const std::string& model : options.models.empty() ? default_models(device) : options.models) {
    shapes.push_back(shape_of(checkpoint::find_preset(model), options.tp));
  }
  for (const std::string& name : options.providers) providers.push_back(provider_of(device, name));
  if (providers.empty()) providers = cli::providers(device);
  for (const std::string& text : options.peers) {
    const Peer peer = peer_of(text);
    options.output.expect_other_file("--peer's", peer.file);
    providers.push_back(load(peer));
  }
  for (const std::int64_t count : tokens) {
    require_at_least("--tokens", count, 1);
    for (const Shape& shape : shapes) block(shape, count);
  }
}

Block BenchPlan::block(const Shape& shape, std::int64_t token_count) const {
  Block block{.device = device,
              .dtype = dtype,
              .layout = layout,
              .activation = shape.activation,
              .hidden_size = shape.hidden_size,
              .intermediate_size = shape.intermediate_size,
              .tokens = token_count,
              .implementation = implementation,
              .chunk_tokens = chunk,
              .batch_invariant = batch_invariant};
  require_addressable(block);
  return block;
}

const Provider& BenchPlan::provider(const std::string& name) const {
  return *std::ranges::find(providers, name, &Provider::name);
}

}  // namespace gatefold::cli
