#include <cuda.h>

#include <algorithm>
#include <map>

#include "cuda_support.hpp"
#include "driver.hpp"
#include "ops/targets.hpp"

// Memory that cudaMalloc didn't allocate: a pool's, managed, page-locked on the host, and virtual memory that was
// mapped (PyTorch's expandable_segments).
namespace gatefold::test {
namespace {

using PoolMemory = MemoryBy<[](void** memory, std::size_t bytes) { return cudaMallocAsync(memory, bytes, nullptr); },
                            [](void* memory) { return cudaFreeAsync(memory, nullptr); }>;
using ManagedMemory =
    MemoryBy<[](void** memory, std::size_t bytes) { return cudaMallocManaged(memory, bytes, cudaMemAttachGlobal); },
             cudaFree>;
using LockedHostMemory = MemoryBy<cudaMallocHost, cudaFreeHost>;

// Each allocation is two pieces of physical memory, mapped one after the other.
class MappedMemory final : public CopiedMemory {
 public:
  void* allocate(std::size_t bytes) override {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    std::size_t unit = 0;
    const auto granularity =
        driver_function<decltype(&::cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
    require_driver(granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
    const std::size_t piece = std::max<std::size_t>((bytes / 2 + unit - 1) / unit, 1) * unit;
    CUdeviceptr address = 0;
    const auto reserve = driver_function<decltype(&::cuMemAddressReserve)>("cuMemAddressReserve");
    require_driver(reserve(&address, 2 * piece, 0, 0, 0), "cuMemAddressReserve");
    for (const CUdeviceptr at : {address, address + piece}) {
      CUmemGenericAllocationHandle handle = 0;
      require_driver(driver_function<decltype(&::cuMemCreate)>("cuMemCreate")(&handle, piece, &properties, 0),
                     "cuMemCreate");
      require_driver(driver_function<decltype(&::cuMemMap)>("cuMemMap")(at, piece, 0, handle, 0), "cuMemMap");
      require_driver(driver_function<decltype(&::cuMemRelease)>("cuMemRelease")(handle), "cuMemRelease");
    }
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    require_driver(driver_function<decltype(&::cuMemSetAccess)>("cuMemSetAccess")(address, 2 * piece, &access, 1),
                   "cuMemSetAccess");
    auto* memory = reinterpret_cast<void*>(address);
    sizes_[memory] = 2 * piece;
    return memory;
  }
  void release(void* memory) override {
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    const std::size_t size = sizes_[memory];
    static_cast<void>(cudaDeviceSynchronize());
    static_cast<void>(driver_function<decltype(&::cuMemUnmap)>("cuMemUnmap")(address, size));
    static_cast<void>(driver_function<decltype(&::cuMemAddressFree)>("cuMemAddressFree")(address, size));
    sizes_.erase(memory);
  }

 private:
  std::map<void*, std::size_t> sizes_;
};

class MemoryKinds : public TargetTest {
 protected:
  // The same bits as in memory that cudaMalloc allocated; few tokens and many.
  template <class Kind>
  void expect_the_same_bits() {
    const Random random = test_random();
    bool taken = false;
    for (const std::int64_t tokens : {9, 300}) {
      const Spec s = spec(tokens, 520, 1032);
      Random first = random;
      Experiment ordinary(s, first);
      if (!ordinary.run(GetParam().implementation)) continue;
      taken = true;
      Kind memory;
      Random second = random;
      Experiment experiment(s, second, memory);
      ASSERT_TRUE(experiment.run(GetParam().implementation)) << describe(s);
      EXPECT_EQ(experiment.out_bytes(), ordinary.out_bytes()) << describe(s);
    }
    if (!taken) GTEST_SKIP() << "not taken by " << GetParam().implementation;
  }
};
INSTANTIATE_TEST_SUITE_P(All, MemoryKinds, testing::ValuesIn(all_targets()), target_name);

TEST_P(MemoryKinds, OfAPool) { expect_the_same_bits<PoolMemory>(); }
TEST_P(MemoryKinds, Managed) { expect_the_same_bits<ManagedMemory>(); }
TEST_P(MemoryKinds, LockedOnTheHost) { expect_the_same_bits<LockedHostMemory>(); }
TEST_P(MemoryKinds, Mapped) { expect_the_same_bits<MappedMemory>(); }

}  // namespace
}  // namespace gatefold::test
