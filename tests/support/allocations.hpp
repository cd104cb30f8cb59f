#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "gatefold/gatefold.h"

// What a program takes from malloc and its like, if it links allocations.cpp: that file replaces them, so it is no part
// of the tests' library. Under a sanitizer, whose malloc stays, operator new alone.
namespace gatefold::test {

// Grants this many allocations; the one after them fails, and later ones don't.
void fail_allocation_after(std::int64_t granted);
// Grants all from now on. True if one has failed.
bool stop_failing_allocations();

std::int64_t allocations_alive();

// call() returns a status; it allocates nothing, though nothing would be granted.
template <class Call>
void expect_allocates_nothing(Call call) {
  fail_allocation_after(0);
  const gatefold_status status = call();
  EXPECT_FALSE(stop_failing_allocations());
  EXPECT_EQ(status, GATEFOLD_SUCCESS);
}

// call() makes its allocations fail one after the other until it needs no more: each gives a status with a message, and
// nothing is lost.
template <class Call>
void expect_each_failed_allocation_is_a_status(Call call) {
  call();  // what is made once for the process is there
  for (std::int64_t n = 0; n < 10000; ++n) {
    const std::int64_t before = allocations_alive();
    fail_allocation_after(n);
    const gatefold_status status = call();
    const bool failed = stop_failing_allocations();
    ASSERT_EQ(allocations_alive(), before) << "allocation " << n;
    if (!failed) {
      EXPECT_GT(n, 0);
      EXPECT_EQ(status, GATEFOLD_SUCCESS);
      return;
    }
    ASSERT_EQ(status, GATEFOLD_ERROR_OUT_OF_MEMORY) << "allocation " << n;
    ASSERT_STREQ(gatefold_last_error(), "host memory: an allocation failed");
  }
  FAIL() << "no end of allocations";
}

}  // namespace gatefold::test
