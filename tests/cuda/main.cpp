#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "gatefold/gatefold.h"
#include "support/random.hpp"

namespace {

// What ctest knows as "skipped": there was nothing to run the tests on.
constexpr int skipped = 77;

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  const char* why = nullptr;
  const int count = gatefold_device_count(GATEFOLD_DEVICE_CUDA, &why);
  if (count == 0) {
    std::printf("gatefold_cuda_tests: nothing was run: %s\n", why);
    return skipped;
  }
  gatefold_device_info info{};
  if (gatefold_device_query(GATEFOLD_DEVICE_CUDA, 0, &info) == GATEFOLD_SUCCESS) {
    std::printf("%d CUDA device(s); device 0: %s, %s\n", count, info.name, info.features);
  }
  std::printf("GATEFOLD_TEST_SEED=%llu repeats this run%s\n", static_cast<unsigned long long>(gatefold::test::seed()),
              gatefold::test::thorough() ? "; thorough" : "; GATEFOLD_TEST_THOROUGH=1 runs more");
  std::fflush(stdout);
  const int code = RUN_ALL_TESTS();
  // A fault in a kernel may come to light after the last test.
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::printf("gatefold_cuda_tests: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? code : 1;
}
