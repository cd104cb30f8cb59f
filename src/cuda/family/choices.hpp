#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/arithmetic.hpp"

namespace gatefold::cuda {

// Which of a plan's kernels a run takes, by device and by range of tokens. The plan can't know its devices, so the
// first run of a range on a device makes the choice, and later ones look it up: an estimate of every kernel takes
// longer than all else that the host does for a run (bench_host_time).
//
// All tokens of a range take the kernel that is best for the last of them. Up to 64 each number is a range of its own,
// then 8 are: tiles have multiples of 8 tokens, and what fits one of 72 does not take what is best for 80. Above 8192
// every run chooses for itself, for what takes milliseconds.
class Choices {
 public:
  static constexpr std::int64_t exact = 64;
  static constexpr std::int64_t step = 8;
  static constexpr std::int64_t most_tokens = 8192;

  static constexpr std::int64_t last_of_range(std::int64_t tokens) {
    return tokens <= exact || tokens > most_tokens ? tokens : ceil_div(tokens, step) * step;
  }

  explicit Choices(std::size_t devices) : of_device_(devices) {}

  // The index that choose(last_of_range(tokens)) gives, which may be -1 for none, and is less than most_kernels. Any
  // number of threads may ask at a time; two that come first both choose, and choose alike.
  template <class Choose>
  int operator()(int device, std::int64_t tokens, Choose choose) {
    const std::int64_t last = last_of_range(tokens);
    if (last < 0 || last > most_tokens || static_cast<std::size_t>(device) >= of_device_.size()) return choose(last);
    std::atomic<std::uint8_t>& known = of_device_[static_cast<std::size_t>(device)][index_of(last)];
    const std::uint8_t made = known.load(std::memory_order_relaxed);
    if (made != unknown) return made - first;
    const int chosen = choose(last);
    known.store(static_cast<std::uint8_t>(chosen + first), std::memory_order_relaxed);
    return chosen;
  }

  static constexpr int most_kernels = 250;

 private:
  static constexpr std::uint8_t unknown = 0;
  static constexpr int first = 2;  // of the numbers that stand for an index; one below it, for none
  static constexpr std::size_t ranges = exact + 1 + (most_tokens - exact) / step;

  static constexpr std::size_t index_of(std::int64_t last) {
    return static_cast<std::size_t>(last <= exact ? last : exact + (last - exact) / step);
  }

  std::vector<std::array<std::atomic<std::uint8_t>, ranges>> of_device_;
};

}  // namespace gatefold::cuda
