#include "gatefold/names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

// Every value of every enum has a name of its own; messages use the same.
namespace gatefold::test {
namespace {

template <class Enum>
void expect_names(const char* (*name_of)(Enum), Enum last) {
  std::set<std::string> names;
  for (int value = 1; value <= last; ++value) names.insert(name_of(static_cast<Enum>(value)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last));
  EXPECT_FALSE(names.contains("?"));
  EXPECT_STREQ(name_of(static_cast<Enum>(0)), "?");
}

TEST(Names, OneForEachValue) {
  expect_names(gatefold_name_of_op, GATEFOLD_OP_MLP);
  expect_names(gatefold_name_of_dtype, GATEFOLD_DTYPE_BF16);
  expect_names(gatefold_name_of_device, GATEFOLD_DEVICE_CUDA);
  expect_names(gatefold_name_of_layout, GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE);
  expect_names(gatefold_name_of_activation, GATEFOLD_ACTIVATION_SWIGLU_CLAMPED);
  static_assert(gatefold_name_of_op(GATEFOLD_OP_GATE_UP)[0] == 'g');
}

}  // namespace
}  // namespace gatefold::test
