#include "support/allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace gatefold::test {
namespace {

std::atomic<std::int64_t> alive{0};
std::atomic<std::int64_t> left{-1};  // until one fails; below 0 none does

}  // namespace

void fail_allocation_after(std::int64_t granted) { left = granted; }
bool stop_failing_allocations() { return left.exchange(-1) < 0; }
std::int64_t allocations_alive() { return alive; }

}  // namespace gatefold::test

// Not inlined: GCC would see free() called on what comes from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  using namespace gatefold::test;
  if (left.load() >= 0 && left.fetch_sub(1) == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ++alive;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  --gatefold::test::alive;
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }
