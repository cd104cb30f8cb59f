#include "cli/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cli/element.hpp"

namespace gatefold::cli {
namespace {

// 32 bits to the middle of one of 2^24 equal parts of (0, 1): never 0, so that its logarithm is finite.
float to_unit(std::uint32_t bits) { return (static_cast<float>(bits >> 8) + 0.5F) * 0x1p-24F; }

struct Pair {
  float first, second;
};

// Box and Muller: two independent normal numbers from two uniform ones.
Pair normal_pair(std::uint64_t bits) {
  const float radius = std::sqrt(-2.0F * std::log(to_unit(static_cast<std::uint32_t>(bits >> 32))));
  const float angle = 2.0F * std::numbers::pi_v<float> * to_unit(static_cast<std::uint32_t>(bits));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

Pair uniform_pair(std::uint64_t bits) {
  return {2.0F * to_unit(static_cast<std::uint32_t>(bits >> 32)) - 1.0F,
          2.0F * to_unit(static_cast<std::uint32_t>(bits)) - 1.0F};
}

template <class Element>
void fill(typename Element::Stored* data, std::int64_t count, Distribution distribution, std::uint64_t seed) {
  const auto scale = static_cast<float>(distribution.scale);
  const bool normal = distribution.kind == Distribution::Kind::normal;
#pragma omp parallel for
  for (std::int64_t pair = 0; pair < (count + 1) / 2; ++pair) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(pair));
    const Pair values = normal ? normal_pair(bits) : uniform_pair(bits);
    data[2 * pair] = Element::store(scale * values.first);
    if (2 * pair + 1 < count) data[2 * pair + 1] = Element::store(scale * values.second);
  }
}

}  // namespace

// The output function of SplitMix64 (Steele, Lea & Flood, 2014) on a counter that starts at a mixed seed.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  };
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  return mix(mix(seed + golden) + (index + 1) * golden);
}

Distribution Distribution::kaiming_uniform(std::int64_t fan_in) {
  return {Kind::uniform, 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)))};
}

void fill_random(void* data, gatefold_dtype dtype, std::int64_t count, Distribution distribution, std::uint64_t seed) {
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    fill<Element>(static_cast<typename Element::Stored*>(data), count, distribution, seed);
  });
}

}  // namespace gatefold::cli
