#include "cli/peer.hpp"

#include <dlfcn.h>

#include "checkpoint/input_error.hpp"
#include "cli/gatefold_peer.h"
#include "cli/other_build.hpp"

namespace gatefold::cli {
namespace {

constexpr const char* prefix = "peer-";

using Function = int (*)(const gatefold_peer_args*);

// The library stays loaded: its kernels may be running until the process ends.
void* open_library(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps dlerror's text per thread
  if (library == nullptr) checkpoint::throw_input_error("--peer: ", dlerror());
  return library;
}

class PeerStage final : public Stage {
 public:
  PeerStage(std::string name, Function function, const Block& block)
      : name_(std::move(name)), function_(function), block_(block) {}

  std::string implementation() const override { return name_; }
  Work work() const override { return gate_up_work(block_); }

  void enqueue(const Tensors& tensors, Backend& backend) const override {
    const gatefold_peer_args args{block_.tokens,
                                  block_.hidden_size,
                                  block_.intermediate_size,
                                  static_cast<std::int32_t>(block_.dtype),
                                  tensors.x,
                                  tensors.w_gate,
                                  block_.layout.packed() ? nullptr : tensors.w_up,
                                  tensors.h,
                                  backend.stream()};
    if (const int code = function_(&args); code != 0) {
      checkpoint::throw_input_error(name_, ": returned ", code, " for ", block_.tokens, " tokens of ",
                                    block_.hidden_size, " x ", block_.intermediate_size);
    }
  }

 private:
  std::string name_;
  Function function_;
  Block block_;
};

}  // namespace

Peer peer_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    checkpoint::throw_input_error("--peer: \"", text, "\" is not NAME=FILE");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Provider load(const Peer& peer) {
  const std::string name = prefix + peer.name;
  void* library = open_library(peer.file);
  auto* function = reinterpret_cast<Function>(dlsym(library, "gatefold_peer_gate_up"));
  if (function == nullptr && !is_gatefold(library)) {
    checkpoint::throw_input_error("--peer: ", peer.file,
                                  " exports neither gatefold_peer_gate_up nor gatefold.h's functions");
  }
  return {name, [name, library, function](gatefold_op op, const Block& block) -> std::optional<Way> {
            if (op != GATEFOLD_OP_GATE_UP) return {};
            if (function == nullptr) return Way(op, name, {gate_up_of_build(library, name, block)});
            return Way(op, name, {std::make_shared<PeerStage>(name, function, block)});
          }};
}

bool is_peer(const std::string& provider) { return provider.starts_with(prefix); }

}  // namespace gatefold::cli
