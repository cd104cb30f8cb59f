#include <cstring>
#include <new>

#include "support/memory.hpp"

namespace gatefold::test {
namespace {

class HostMemory final : public Memory {
 public:
  gatefold_device device() const override { return GATEFOLD_DEVICE_CPU; }
  void* allocate(std::size_t bytes) override { return ::operator new(bytes, std::align_val_t{256}); }
  void release(void* memory) override { ::operator delete(memory, std::align_val_t{256}); }
  void upload(void* to, const void* from_host, std::size_t bytes) override { std::memcpy(to, from_host, bytes); }
  void download(void* to_host, const void* from, std::size_t bytes) override { std::memcpy(to_host, from, bytes); }
};

}  // namespace

Memory& device_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace gatefold::test
