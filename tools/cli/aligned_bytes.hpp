#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace gatefold::cli {

// Memory that begins on a cache line, as a Workspace does: a matrix unit that loads rows across two lines takes longer.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{256};

  AlignedAllocator() = default;
  template <class Other>
  explicit AlignedAllocator(const AlignedAllocator<Other>& /*other*/) {}

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, alignment); }
  bool operator==(const AlignedAllocator& /*other*/) const { return true; }
};

using Bytes = std::vector<std::byte, AlignedAllocator<std::byte>>;

}  // namespace gatefold::cli
