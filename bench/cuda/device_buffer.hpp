#pragma once

#include <cstddef>
#include <cstdint>

#include <gatefold/gatefold.h>

namespace gatefold::bench {

// Device memory, owned.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  void* get() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Fresh normal values: zeros would run faster than real data.
  void fill_normal(gatefold_dtype dtype, std::uint64_t seed);

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace gatefold::bench
