// What the host spends on a run: the time of gatefold_run() itself, which only enqueues. Cases alternate in bursts of
// calls, each followed by a wait for the device, so that no call waits for room in the stream; a launch of a kernel
// that does nothing, with as many bytes of parameters, is the floor. "choosing" are runs of a range of tokens that the
// plan has not met, each of which chooses among all kernels. A table goes to stdout, rows as JSON to the file named by
// --json.
//     bench_host_time [--json FILE] [--bursts N] [--calls N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <gatefold/gatefold.hpp>
#include <optional>
#include <string>
#include <vector>

#include "device_buffer.hpp"
#include "empty_kernel.hpp"
#include "program.hpp"
#include "quantile.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

// Llama 8B's layer.
constexpr std::int64_t hidden_size = 4096;
constexpr std::int64_t intermediate_size = 14336;
constexpr std::int64_t most_tokens = 1024;
constexpr std::int64_t choosing_from = 65;
constexpr std::int64_t choosing_step = 16;  // tokens of a range (src/cuda/family/choices.hpp)

std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(2 * elements); }

struct Data {
  DeviceBuffer x{bytes(most_tokens * hidden_size)};
  DeviceBuffer weights{bytes(2 * intermediate_size * hidden_size)};
  DeviceBuffer down{bytes(intermediate_size * hidden_size)};
  DeviceBuffer out{bytes(most_tokens * intermediate_size)};
  DeviceBuffer workspace;

  explicit Data(std::size_t workspace_bytes) : workspace(std::max<std::size_t>(workspace_bytes, 256)) {
    for (DeviceBuffer* buffer : {&x, &weights, &down}) buffer->fill_normal(GATEFOLD_DTYPE_BF16, 1);
  }

  Args args(gatefold_op op, std::int64_t tokens, cudaStream_t stream) const {
    Args a;
    a.tokens = tokens;
    a.x = x.get();
    if (op == GATEFOLD_OP_GEMM) {
      a.up = weights.get();
    } else {
      a.gate = weights.get();
    }
    if (op == GATEFOLD_OP_MLP) {
      a.down = down.get();
      a.workspace = {workspace.get(), workspace.bytes()};
    }
    a.out = out.get();
    a.stream = stream;
    return a;
  }
};

Plan plan_of(gatefold_op op, const char* implementation) {
  Desc desc{.op = op,
            .dtype = GATEFOLD_DTYPE_BF16,
            .device = GATEFOLD_DEVICE_CUDA,
            .layout = Layout::gate_up(),
            .activation = Activation::silu(),
            .hidden_size = hidden_size,
            .intermediate_size = intermediate_size};
  if (op == GATEFOLD_OP_GEMM) {
    desc.layout.reset();
    desc.activation = {};
  }
  if (implementation != nullptr) desc.implementation = implementation;
  return Plan(desc);
}

struct Case {
  const char* op_name;
  gatefold_op op;
  std::int64_t tokens;
  const char* implementation;  // forced, or null
};

constexpr Case cases[] = {
    {"gemm", GATEFOLD_OP_GEMM, 128, nullptr},       {"gate_up", GATEFOLD_OP_GATE_UP, 16, nullptr},
    {"gate_up", GATEFOLD_OP_GATE_UP, 100, nullptr}, {"gate_up", GATEFOLD_OP_GATE_UP, 128, nullptr},
    {"gate_up", GATEFOLD_OP_GATE_UP, 128, "sm80"},  {"gate_up", GATEFOLD_OP_GATE_UP, 128, "simt"},
    {"mlp", GATEFOLD_OP_MLP, 16, nullptr},          {"mlp", GATEFOLD_OP_MLP, 100, nullptr},
    {"mlp", GATEFOLD_OP_MLP, 128, nullptr},
};

struct Provider {
  std::string op;
  std::int64_t tokens;  // 0: several
  std::string implementation;
  std::function<void(int call)> enqueue;
  std::vector<double> microseconds = {};  // of a call, one mean per burst
};

double time_burst(const Provider& provider, int calls, cudaStream_t stream) {
  const auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) provider.enqueue(call);
  const auto end = std::chrono::steady_clock::now();
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return std::chrono::duration<double, std::micro>(end - begin).count() / calls;
}

// Of each provider a burst in turn; the first two are not counted.
void measure(std::vector<Provider>& providers, int bursts, int calls, cudaStream_t stream) {
  for (int burst = -2; burst < bursts; ++burst) {
    for (Provider& provider : providers) {
      const double microseconds = time_burst(provider, calls, stream);
      if (burst >= 0) provider.microseconds.push_back(microseconds);
    }
  }
}

void write_row(std::FILE* file, const Provider& p) {
  std::fprintf(file,
               "{\"op\": \"%s\", \"tokens\": %lld, \"implementation\": \"%s\", \"host_us\": %.3f, \"host_us_p10\": "
               "%.3f, \"host_us_p90\": %.3f}",
               p.op.c_str(), static_cast<long long>(p.tokens), p.implementation.c_str(), median(p.microseconds),
               quantile(p.microseconds, 0.1), quantile(p.microseconds, 0.9));
}

struct Options {
  std::string json;
  int bursts = 200;
  int calls = 32;
};

Options read_options(int argc, char** argv) {
  Options options;
  parse_options(argc, argv, 1,
                {text_option("--json", options.json), count_option("--bursts", options.bursts, 1),
                 count_option("--calls", options.calls, 1, 256)});
  return options;
}

// A plan for each burst, of which each call is of another range of tokens.
Provider time_choosing(const Data& data, const Options& options, cudaStream_t stream) {
  std::optional<Plan> plan;
  Provider provider{"gate_up, choosing", 0, "", [&](int call) {
                      plan->run(data.args(GATEFOLD_OP_GATE_UP, choosing_from + call * choosing_step, stream));
                    }};
  const int ranges = static_cast<int>((most_tokens - choosing_from) / choosing_step);
  for (int burst = -2; burst < options.bursts; ++burst) {
    plan.emplace(plan_of(GATEFOLD_OP_GATE_UP, nullptr));
    const double microseconds = time_burst(provider, std::min(options.calls, ranges), stream);
    if (burst >= 0) provider.microseconds.push_back(microseconds);
  }
  provider.implementation = plan->implementation(choosing_from);
  return provider;
}

void run(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  std::vector<Plan> plans;
  std::size_t workspace = 0;
  for (const Case& c : cases) {
    plans.push_back(plan_of(c.op, c.implementation));
    workspace = std::max(workspace, plans.back().workspace_size(c.tokens));
  }
  const Data data(workspace);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");

  std::vector<Provider> providers{{"empty kernel", 0, "", [&](int /*call*/) { enqueue_empty_kernel(stream); }}};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Case& c = cases[i];
    const Args args = data.args(c.op, c.tokens, stream);
    providers.push_back({c.op_name, c.tokens, plans[i].implementation(c.tokens),
                         [&plan = plans[i], args](int /*call*/) { plan.run(args); }});
  }
  measure(providers, options.bursts, options.calls, stream);
  providers.push_back(time_choosing(data, options, stream));

  std::printf("| op | tokens | implementation | host us | p10 | p90 |\n|---|---|---|---|---|---|\n");
  for (const Provider& p : providers) {
    std::printf("| %s | %lld | %s | %.2f | %.2f | %.2f |\n", p.op.c_str(), static_cast<long long>(p.tokens),
                p.implementation.c_str(), median(p.microseconds), quantile(p.microseconds, 0.1),
                quantile(p.microseconds, 0.9));
  }
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  if (options.json.empty()) return;
  ResultFile file(options.json, argc, argv);
  for (const Provider& p : providers) write_row(file.next_row(), p);
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_host_time", [&] { gatefold::bench::run(argc, argv); });
}
