#include <map>

#include "cuda_support.hpp"

namespace gatefold::test {
namespace {

class DeviceMemory final : public CopiedMemory {
 public:
  explicit DeviceMemory(int device) : device_(device) {}

  void* allocate(std::size_t bytes) override {
    const CurrentDevice here(device_);
    void* memory = nullptr;
    require(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
  }
  void release(void* memory) override { static_cast<void>(cudaFree(memory)); }
  void upload(void* to, const void* from_host, std::size_t bytes) override {
    const CurrentDevice here(device_);
    CopiedMemory::upload(to, from_host, bytes);
  }
  void download(void* to_host, const void* from, std::size_t bytes) override {
    const CurrentDevice here(device_);
    CopiedMemory::download(to_host, from, bytes);
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
