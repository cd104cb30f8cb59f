#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cuda_support.hpp"
#include "early_code.hpp"

// A kernel may begin before the one before it has ended only if its code waits for that, whatever the device could do.
namespace gatefold::test {
namespace {

class Early : public testing::Test {
 protected:
  void SetUp() override {
    int major = 0;
    require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
    if (major < 9) GTEST_SKIP() << "no kernel begins early on compute capability " << major;
  }
};

TEST_F(Early, IsDecidedByTheCode) {
  EXPECT_FALSE(of_80::waits());
  EXPECT_TRUE(of_90::waits());
}

// Kernels that let the next begin at once and write late, each followed by code without a wait.
TEST_F(Early, CodeWithoutAWaitKeepsItsPlace) {
  constexpr int count = 8 * 256;
  constexpr int runs = 60;
  std::vector<float> values(count, 1.0F);
  const Allocation first(device_memory(), count * sizeof(float));
  const Allocation second(device_memory(), count * sizeof(float));
  device_memory().upload(first.get(), values.data(), count * sizeof(float));
  const Stream stream;
  auto* a = reinterpret_cast<float*>(first.get());
  auto* b = reinterpret_cast<float*>(second.get());
  for (int run = 0; run < runs; run += 2) {
    ASSERT_TRUE(of_90::enqueue(a, b, count, 0, stream.get()).ok());
    ASSERT_TRUE(of_80::enqueue(b, a, count, 0, stream.get()).ok());
  }
  stream.wait();
  device_memory().download(values.data(), first.get(), count * sizeof(float));
  for (int i = 0; i < count; ++i) ASSERT_EQ(values[i], std::ldexp(1.0F, runs)) << "element " << i;
}

}  // namespace
}  // namespace gatefold::test
