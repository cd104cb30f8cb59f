#pragma once

#include <cuda_runtime_api.h>

#include <gatefold/gatefold.h>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "support/memory.hpp"

namespace gatefold::test {

inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

inline int device_count() { return gatefold_device_count(GATEFOLD_DEVICE_CUDA, nullptr); }

// Whether the first device runs the kernels of compute capability 9.0.
inline bool is_hopper() {
  gatefold_device_info info{};
  return gatefold_device_query(GATEFOLD_DEVICE_CUDA, 0, &info) == GATEFOLD_SUCCESS &&
         std::strcmp(info.features, "sm_90") == 0;
}

// Memory that the current device's copies reach, however it is allocated.
class CopiedMemory : public Memory {
 public:
  gatefold_device device() const override { return GATEFOLD_DEVICE_CUDA; }
  void upload(void* to, const void* from_host, std::size_t bytes) override {
    require(cudaMemcpy(to, from_host, bytes, cudaMemcpyHostToDevice), "upload");
    require(cudaDeviceSynchronize(), "upload");  // streams that don't wait for the default one may read it now
  }
  void download(void* to_host, const void* from, std::size_t bytes) override {
    require(cudaDeviceSynchronize(), "the work before a download");
    require(cudaMemcpy(to_host, from, bytes, cudaMemcpyDeviceToHost), "download");
  }
};

// allocate(&memory, bytes), release(memory).
template <auto allocate_by, auto release_by>
class MemoryBy final : public CopiedMemory {
 public:
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    require(allocate_by(&memory, bytes), "an allocation");
    return memory;
  }
  void release(void* memory) override { static_cast<void>(release_by(memory)); }
};

// The memory of one device, whichever is current.
Memory& memory_of_device(int device);

// Makes a device current until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    require(cudaGetDevice(&previous_), "cudaGetDevice");
    require(cudaSetDevice(device), "cudaSetDevice");
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() { static_cast<void>(cudaSetDevice(previous_)); }

 private:
  int previous_ = 0;
};

// A stream of the current device that does not wait for the default one.
class Stream {
 public:
  Stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  cudaStream_t get() const { return stream_; }
  void wait() const { require(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace gatefold::test
