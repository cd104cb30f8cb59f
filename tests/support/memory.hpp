#pragma once

#include <cstddef>
#include <memory>

#include "gatefold/gatefold.h"

namespace gatefold::test {

// Where the tensors of a tested op live. Tests fill and inspect images in host memory, and copy.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  virtual gatefold_device device() const = 0;
  virtual void* allocate(std::size_t bytes) = 0;  // 256-byte aligned; bytes > 0
  virtual void release(void* memory) = 0;
  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;  // after all work is done
};

// The memory that this test program tests. Each program links one definition.
Memory& device_memory();

// A block of it.
class Allocation {
 public:
  Allocation(Memory& memory, std::size_t bytes) : data_(memory.allocate(bytes), Release{&memory}) {}
  std::byte* get() const { return static_cast<std::byte*>(data_.get()); }

 private:
  struct Release {
    Memory* memory;
    void operator()(void* data) const { memory->release(data); }
  };
  std::unique_ptr<void, Release> data_;
};

}  // namespace gatefold::test
