#pragma once

#include "cuda_support.hpp"

namespace gatefold::test {

// Keeps some of device 0's multiprocessors busy until it is released, as a kernel of another stream may: one block on
// each, which takes all the shared memory that a block can have. What waits for the whole device would wait for it too,
// so memory is allocated and freed, and kernels are loaded, before and after.
class HeldMultiprocessors {
 public:
  explicit HeldMultiprocessors(int count);  // returns when they are held
  HeldMultiprocessors(const HeldMultiprocessors&) = delete;
  HeldMultiprocessors& operator=(const HeldMultiprocessors&) = delete;
  ~HeldMultiprocessors();

  // False if blocks had given up by then, after ten seconds, so that even what waited for these multiprocessors ends.
  bool release();

 private:
  int* flags_ = nullptr;  // page-locked host memory
  Stream stream_;
};

int multiprocessors();

}  // namespace gatefold::test
