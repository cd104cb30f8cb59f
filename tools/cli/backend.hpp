#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "gatefold/gatefold.hpp"

namespace gatefold::cli {

// The two element-wise passes that frameworks run without fusion: activated = act(gate), then h = activated * up, each
// rounded to the element type. gate and up lie as `layout` says: two [T, F] tensors, or one [T, 2F] at `gate`.
struct ElementwisePass {
  gatefold_dtype dtype{};
  Layout layout = Layout::separate();
  Activation activation;
  std::int64_t tokens = 0;
  std::int64_t intermediate_size = 0;
  const std::byte* gate = nullptr;
  const std::byte* up = nullptr;
  std::byte* activated = nullptr;
  std::byte* h = nullptr;
};

// What the tool needs of a device beside the library: memory, time, and the plain passes to compare with. A device is
// one file that implements this, and one line in make_backend.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual gatefold_device device() const = 0;

  // Name, threads, memory, clocks, versions of driver and toolkit: the part of a result's context that the device
  // knows.
  virtual nlohmann::ordered_json describe() const = 0;

  // Does the device work on host memory? Then inputs are used where they lie.
  virtual bool uses_host_memory() const = 0;
  virtual void* allocate(std::size_t bytes) = 0;  // 256-byte aligned; throws
  virtual void deallocate(void* data) noexcept = 0;
  virtual void upload(void* device_data, std::span<const std::byte> host_data) = 0;
  virtual void download(std::span<std::byte> host_data, const void* device_data) = 0;
  virtual std::size_t peak_allocated() const = 0;  // bytes from allocate(), at their most since reset_peak()
  virtual void reset_peak() = 0;
  virtual std::size_t memory_in_use() const = 0;  // of the device, whoever allocated it

  // Bytes of the last-level cache, of all of them where there are several: timed buffers are rotated past it.
  virtual std::size_t cache_bytes() const = 0;

  // Bytes that buffers of a benchmark may take now and leave room for everything else.
  virtual std::size_t memory_to_use() const = 0;

  virtual void* stream() const = 0;  // for gatefold_args
  virtual void synchronise() = 0;
  virtual double seconds(const std::function<void()>& enqueue) = 0;  // that the enqueued work takes
  // Work to be enqueued again and again: on CUDA a graph of it, captured now (which runs it once before), else itself.
  virtual std::function<void()> captured(const std::function<void()>& enqueue) { return enqueue; }
  // Runs the work as a range of its own for a profiler that measures ranges (`ncu --replay-mode app-range`).
  virtual void run_profiled(const std::function<void()>& enqueue) {
    enqueue();
    synchronise();
  }
  // Does the power and heat of earlier work change what later work takes? Then each timing is preceded by as much of
  // the same, untimed.
  virtual bool remembers_earlier_work() const = 0;

  // Enqueued like the library's ops.
  virtual void activation_pass(const ElementwisePass& pass) = 0;
  virtual void multiply_pass(const ElementwisePass& pass) = 0;
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
};

gatefold_device default_device();
std::unique_ptr<Backend> make_backend(gatefold_device device);

// Memory of a backend, or a view of host memory that the device can work on.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Backend& backend, std::size_t bytes)
      : memory_(backend.allocate(bytes), Release{&backend}), data_(static_cast<std::byte*>(memory_.get())) {}

  // Host data where the device can read them: in place, or a copy.
  static DeviceBuffer of(Backend& backend, std::span<const std::byte> host_data) {
    DeviceBuffer buffer;
    if (backend.uses_host_memory()) {
      buffer.data_ = host_data.data();
      return buffer;
    }
    buffer = DeviceBuffer(backend, host_data.size());
    backend.upload(buffer.memory_.get(), host_data);
    return buffer;
  }

  const std::byte* data() const { return data_; }
  std::byte* writable() const { return static_cast<std::byte*>(memory_.get()); }  // null for a view

 private:
  struct Release {
    Backend* backend;
    void operator()(void* data) const { backend->deallocate(data); }
  };
  std::unique_ptr<void, Release> memory_{nullptr, Release{nullptr}};
  const std::byte* data_ = nullptr;
};

}  // namespace gatefold::cli
