#include "support/allocations.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace gatefold::test {
namespace {

std::atomic<std::int64_t> alive{0};
std::atomic<std::int64_t> left{-1};  // until one fails; below 0 none does

// Whether the next one is granted; it is then alive.
bool grant() {
  if (left.load() >= 0 && left.fetch_sub(1) == 0) return false;
  ++alive;
  return true;
}

}  // namespace

void fail_allocation_after(std::int64_t granted) { left = granted; }
bool stop_failing_allocations() { return left.exchange(-1) < 0; }
std::int64_t allocations_alive() { return alive; }

}  // namespace gatefold::test

#if defined(__has_feature)
#define GATEFOLD_HAS_FEATURE(name) __has_feature(name)
#else
#define GATEFOLD_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || GATEFOLD_HAS_FEATURE(address_sanitizer) || \
    GATEFOLD_HAS_FEATURE(thread_sanitizer)
#define GATEFOLD_SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(GATEFOLD_SANITIZED)

// The C library's, so that nobody's allocation goes unseen: OpenMP's runtime is C. operator new comes here too.
extern "C" {

void* __libc_malloc(std::size_t bytes);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);            // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* memory);                                   // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t bytes) noexcept { return gatefold::test::grant() ? __libc_malloc(bytes) : nullptr; }
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return gatefold::test::grant() ? __libc_calloc(count, bytes) : nullptr;
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return gatefold::test::grant() ? __libc_memalign(alignment, bytes) : nullptr;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  if (!gatefold::test::grant()) return nullptr;
  if (memory != nullptr) --gatefold::test::alive;
  return __libc_realloc(memory, bytes);
}
void free(void* memory) noexcept {
  if (memory != nullptr) --gatefold::test::alive;
  __libc_free(memory);
}

}  // extern "C"

#else

// Not inlined: GCC would see free() called on what comes from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (!gatefold::test::grant()) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  --gatefold::test::alive;
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

#endif
