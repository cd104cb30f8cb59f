#include "support/random.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

namespace gatefold::test {

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    if (const char* given = std::getenv("GATEFOLD_TEST_SEED")) return std::stoull(given);
    std::random_device device;
    return static_cast<unsigned long long>(device());
  }();
  return value;
}

Random test_random() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string test = std::string(info->test_suite_name()) + "." + info->name();
  return Random(seed() ^ std::hash<std::string>{}(test));
}

bool thorough() {
  const char* value = std::getenv("GATEFOLD_TEST_THOROUGH");
  return value != nullptr && std::string(value) != "0" && std::string(value) != "";
}

}  // namespace gatefold::test
