#pragma once

#include <cstdint>
#include <vector>

#include "cuda_support.hpp"

namespace gatefold::test {

// Counts, on device 0, where outputs differ from one that is kept there: thousands of launches are compared without a
// copy or a wait.
class Differences {
 public:
  // expected: a whole number of 4-byte words.
  explicit Differences(const std::vector<std::byte>& expected);

  // Enqueues a comparison with `actual`, as long and 4-byte aligned, which is then poisoned: the next run must write
  // all of it anew.
  void count_and_poison(std::byte* actual, cudaStream_t stream);

  // The words that differed so far. Waits for the device.
  std::uint64_t words() const;

 private:
  std::size_t word_count_;
  Allocation expected_;
  Allocation words_;
};

}  // namespace gatefold::test
