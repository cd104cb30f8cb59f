#include <map>

#include "cuda_support.hpp"

namespace gatefold::test {
namespace {

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(int device) : device_(device) {}

  gatefold_device device() const override { return GATEFOLD_DEVICE_CUDA; }
  void* allocate(std::size_t bytes) override {
    const CurrentDevice here(device_);
    void* memory = nullptr;
    require(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
  }
  void release(void* memory) override { static_cast<void>(cudaFree(memory)); }
  void upload(void* to, const void* from_host, std::size_t bytes) override {
    const CurrentDevice here(device_);
    require(cudaMemcpy(to, from_host, bytes, cudaMemcpyHostToDevice), "upload");
    require(cudaDeviceSynchronize(), "upload");  // streams that don't wait for the default one may read it now
  }
  void download(void* to_host, const void* from, std::size_t bytes) override {
    const CurrentDevice here(device_);
    require(cudaDeviceSynchronize(), "the work before a download");
    require(cudaMemcpy(to_host, from, bytes, cudaMemcpyDeviceToHost), "download");
  }

 private:
  int device_;
};

}  // namespace

Memory& memory_of_device(int device) {
  static std::map<int, DeviceMemory> memories;
  return memories.try_emplace(device, device).first->second;
}

Memory& device_memory() { return memory_of_device(0); }

}  // namespace gatefold::test
