#include "cli/cuda_backend.hpp"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "cli/cuda_passes.hpp"
#include "cli/options.hpp"

namespace gatefold::cli {
namespace {

void require(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // told once is enough
  throw std::runtime_error("CUDA: " + what + ": " + cudaGetErrorString(error));
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class Event {
 public:
  Event() { require(cudaEventCreate(&event_), "creating an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }

  void record(cudaStream_t stream) const { require(cudaEventRecord(event_, stream), "recording an event"); }
  double seconds_since(const Event& begin) const {
    require(cudaEventSynchronize(event_), "waiting for the work enqueued");
    float milliseconds = 0.0F;
    require(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "reading an event");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Where one half of a pass's operands lies.
OperandHalf half_of(const ElementwisePass& pass, bool up_half) {
  const std::int64_t F = pass.intermediate_size;
  if (!pass.layout.packed()) return {up_half ? pass.up : pass.gate, F, F};
  const gatefold_layout kind = pass.layout.kind();
  const bool gate_first = kind == GATEFOLD_LAYOUT_GATE_UP || kind == GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP;
  const std::int64_t run = pass.layout.block() != 0 ? pass.layout.block() : F;
  const std::int64_t shift = up_half == gate_first ? run : 0;
  return {pass.gate + shift * size_of(pass.dtype), 2 * F, run};
}

PassShape shape_of(const ElementwisePass& pass) { return {pass.dtype, pass.tokens, pass.intermediate_size}; }

PassActivation activation_of(const ElementwisePass& pass) {
  return {pass.activation.kind, pass.activation.limit, pass.activation.alpha, pass.activation.beta};
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() {
    require(cudaSetDevice(0), "choosing device 0");
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  }
  ~CudaBackend() override { static_cast<void>(cudaStreamDestroy(stream_)); }

  gatefold_device device() const override { return GATEFOLD_DEVICE_CUDA; }

  nlohmann::ordered_json describe() const override {
    gatefold_device_info info{};
    throw_on_error(gatefold_device_query(GATEFOLD_DEVICE_CUDA, 0, &info));
    int driver = 0;
    int runtime = 0;
    require(cudaDriverGetVersion(&driver), "asking for the driver's version");
    require(cudaRuntimeGetVersion(&runtime), "asking for the toolkit's version");
    return {{"device", "cuda"},
            {"gpu", info.name},
            {"features", info.features},
            {"multiprocessors", info.threads},
            {"memory_bytes", info.memory_bytes},
            {"driver", version_text(driver)},
            {"cuda", version_text(runtime)},
            {"clocks",
             {{"sm_mhz_max", attribute(cudaDevAttrClockRate) / 1000},
              {"memory_mhz_max", attribute(cudaDevAttrMemoryClockRate) / 1000}}}};
  }

  bool uses_host_memory() const override { return false; }

  void* allocate(std::size_t bytes) override {
    void* data = nullptr;
    require(cudaMalloc(&data, std::max<std::size_t>(bytes, 1)), "allocating " + std::to_string(bytes) + " bytes");
    sizes_[data] = bytes;
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return data;
  }

  void deallocate(void* data) noexcept override {
    const auto found = sizes_.find(data);
    if (found == sizes_.end()) return;
    allocated_ -= found->second;
    sizes_.erase(found);
    static_cast<void>(cudaFree(data));
  }

  void upload(void* device_data, std::span<const std::byte> host_data) override {
    if (host_data.empty()) return;
    require(cudaMemcpyAsync(device_data, host_data.data(), host_data.size(), cudaMemcpyHostToDevice, stream_),
            "copying to the device");
    synchronise();
  }

  void download(std::span<std::byte> host_data, const void* device_data) override {
    if (host_data.empty()) return;
    require(cudaMemcpyAsync(host_data.data(), device_data, host_data.size(), cudaMemcpyDeviceToHost, stream_),
            "copying from the device");
    synchronise();
  }

  std::size_t peak_allocated() const override { return peak_; }
  void reset_peak() override { peak_ = allocated_; }
  std::size_t memory_in_use() const override {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    require(cudaMemGetInfo(&free_bytes, &total), "asking for the free memory");
    return total - free_bytes;
  }

  std::size_t cache_bytes() const override { return static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize)); }

  std::size_t memory_to_use() const override {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    require(cudaMemGetInfo(&free_bytes, &total), "asking for the free memory");
    return free_bytes / 2;
  }

  void* stream() const override { return stream_; }
  void synchronise() override { require(cudaStreamSynchronize(stream_), "waiting for the work enqueued"); }

  // The beginning is marked in the stream: work that was enqueued before goes on until then, and the GPU is never idle
  // between the two.
  double seconds(const std::function<void()>& enqueue) override {
    begin_.record(stream_);
    enqueue();
    end_.record(stream_);
    return end_.seconds_since(begin_);
  }
  void run_profiled(const std::function<void()>& enqueue) override {
    require(cudaProfilerStart(), "beginning a profiler's range");
    enqueue();
    synchronise();
    require(cudaProfilerStop(), "ending a profiler's range");
  }
  bool remembers_earlier_work() const override { return true; }

  std::function<void()> captured(const std::function<void()>& enqueue) override {
    enqueue();
    synchronise();
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning a capture");
    enqueue();
    cudaGraph_t graph = nullptr;
    require(cudaStreamEndCapture(stream_, &graph), "ending a capture");
    cudaGraphExec_t replay = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&replay, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    require(error, "making a graph");
    const std::shared_ptr<CUgraphExec_st> kept(replay, cudaGraphExecDestroy);
    return [this, kept] { require(cudaGraphLaunch(kept.get(), stream_), "launching a graph"); };
  }

  void activation_pass(const ElementwisePass& pass) override {
    require(enqueue_activation(shape_of(pass), activation_of(pass), half_of(pass, false), pass.activated, stream_),
            "the activation pass");
  }
  void multiply_pass(const ElementwisePass& pass) override {
    require(enqueue_multiplication(shape_of(pass), activation_of(pass), pass.activated, half_of(pass, true), pass.h,
                                   stream_),
            "the multiplication pass");
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copying on the device");
  }

 private:
  static int attribute(cudaDeviceAttr name) {
    int value = 0;
    require(cudaDeviceGetAttribute(&value, name, 0), "asking for an attribute of device 0");
    return value;
  }

  cudaStream_t stream_ = nullptr;
  Event begin_, end_;
  std::unordered_map<void*, std::size_t> sizes_;
  std::size_t allocated_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace gatefold::cli
