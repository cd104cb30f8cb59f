#include <gtest/gtest.h>

#include <cstdio>

#include "support/random.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!testing::GTEST_FLAG(list_tests)) {
    std::printf("GATEFOLD_TEST_SEED=%llu repeats this run\n", static_cast<unsigned long long>(gatefold::test::seed()));
    std::fflush(stdout);
  }
  return RUN_ALL_TESTS();
}
