#include "differences.hpp"

#include <algorithm>

namespace gatefold::test {
namespace {

constexpr std::uint32_t poison = 0xffffffff;  // NaN in every format
constexpr unsigned threads = 256;
constexpr std::size_t most_blocks = 1024;

__global__ void count_and_poison_words(std::uint32_t* actual, const std::uint32_t* expected, std::size_t count,
                                       unsigned long long* words) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    if (actual[i] != expected[i]) atomicAdd(words, 1ULL);
    actual[i] = poison;
  }
}

}  // namespace

Differences::Differences(const std::vector<std::byte>& expected)
    : word_count_(expected.size() / sizeof(std::uint32_t)),
      expected_(device_memory(), expected.size()),
      words_(device_memory(), sizeof(unsigned long long)) {
  if (expected.size() % sizeof(std::uint32_t) != 0) throw std::logic_error("Differences: not a whole number of words");
  device_memory().upload(expected_.get(), expected.data(), expected.size());
  constexpr unsigned long long none = 0;
  device_memory().upload(words_.get(), &none, sizeof none);
}

void Differences::count_and_poison(std::byte* actual, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min(most_blocks, (word_count_ + threads - 1) / threads));
  count_and_poison_words<<<blocks, threads, 0, stream>>>(
      reinterpret_cast<std::uint32_t*>(actual), reinterpret_cast<const std::uint32_t*>(expected_.get()), word_count_,
      reinterpret_cast<unsigned long long*>(words_.get()));
  require(cudaGetLastError(), "count_and_poison_words");
}

std::uint64_t Differences::words() const {
  unsigned long long words = 0;
  device_memory().download(&words, words_.get(), sizeof words);
  return words;
}

}  // namespace gatefold::test
