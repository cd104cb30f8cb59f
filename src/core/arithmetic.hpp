#pragma once

namespace gatefold {

// a / b, rounded up: a >= 0, b > 0.
template <class A, class B>
constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

}  // namespace gatefold
