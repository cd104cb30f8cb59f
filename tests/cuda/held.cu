#include "held.hpp"

#include <algorithm>
#include <thread>

namespace gatefold::test {
namespace {

enum Flag { started, released, gave_up, flags };

__global__ void hold(int* flag) {
  constexpr unsigned long long longest = 10'000'000'000;  // ns
  unsigned long long begin = 0;
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  atomicAdd_system(&flag[started], 1);
  while (*static_cast<volatile int*>(&flag[released]) == 0) {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin > longest) {
      flag[gave_up] = 1;
      return;
    }
  }
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

int read(const int& flag) { return *static_cast<const volatile int*>(&flag); }

}  // namespace

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

HeldMultiprocessors::HeldMultiprocessors(int count) {
  require(cudaHostAlloc(&flags_, flags * sizeof(int), cudaHostAllocMapped), "cudaHostAlloc");
  std::fill_n(flags_, static_cast<int>(flags), 0);
  const int bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  require(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
  hold<<<static_cast<unsigned>(count), 1, static_cast<std::size_t>(bytes), stream_.get()>>>(flags_);
  require(cudaGetLastError(), "hold");
  while (read(flags_[started]) < count && read(flags_[gave_up]) == 0) std::this_thread::yield();
}

bool HeldMultiprocessors::release() {
  const bool held = read(flags_[gave_up]) == 0;
  *static_cast<volatile int*>(&flags_[released]) = 1;
  stream_.wait();
  return held;
}

HeldMultiprocessors::~HeldMultiprocessors() {
  *static_cast<volatile int*>(&flags_[released]) = 1;
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
  static_cast<void>(cudaFreeHost(flags_));
}

}  // namespace gatefold::test
