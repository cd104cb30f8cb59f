#include "checkpoint/random_weights.hpp"

#include <cmath>
#include <cstring>

#include "numbers/float16.hpp"

namespace gatefold::checkpoint {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). Applied to
// a counter in steps of the golden ratio it is that generator.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

float uniform(const UniformStream& stream, std::uint64_t i) {
  const std::uint64_t bits = mix(stream.key + (i + 1) * golden) >> 41;       // 23 bits
  const float centred = static_cast<float>(2 * bits + 1) * 0x1p-23F - 1.0F;  // odd multiples of 2^-23: exact in fp32
  return centred * stream.bound;
}

template <class Element, class Convert>
void fill(const UniformStream& stream, std::uint64_t first, std::span<std::byte> out, Convert convert) {
  for (std::size_t i = 0; i < out.size() / sizeof(Element); ++i) {
    const Element element = convert(uniform(stream, first + i));
    std::memcpy(out.data() + i * sizeof(Element), &element, sizeof(Element));
  }
}

}  // namespace

UniformStream tensor_stream(std::uint64_t seed, std::uint64_t tensor, std::int64_t fan_in) {
  return {mix(mix(seed + golden) ^ mix(tensor * golden)),
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)))};
}

void fill_uniform(const UniformStream& stream, gatefold_dtype dtype, std::uint64_t first, std::span<std::byte> out) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP32: return fill<float>(stream, first, out, [](float value) { return value; });
    case GATEFOLD_DTYPE_FP16:
      return fill<std::uint16_t>(stream, first, out, [](float value) { return numbers::float_to_fp16(value); });
    case GATEFOLD_DTYPE_BF16:
      return fill<std::uint16_t>(stream, first, out, [](float value) { return numbers::float_to_bf16(value); });
  }
}

}  // namespace gatefold::checkpoint
