#include "core/float16.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "support/element.hpp"
#include "support/random.hpp"

// Every bit pattern of both 16-bit types, and the middle of every two neighbours, against the formats' definition.
namespace gatefold {
namespace {

struct Format16 {
  DType dtype;
  gatefold_dtype public_dtype;
  int fraction_bits;
  int bias;
  float (*to_float)(std::uint16_t);
  std::uint16_t (*from_float)(float);

  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1U << (15 - fraction_bits)) - 1U) << fraction_bits);
  }
};

void PrintTo(const Format16& format, std::ostream* out) { *out << to_string(format.dtype); }

class Float16 : public testing::TestWithParam<Format16> {
 protected:
  // sign * significand * 2^exponent, from the fields of the pattern
  static double definition(std::uint16_t bits) {
    const Format16& f = GetParam();
    const int fraction = bits & ((1 << f.fraction_bits) - 1);
    const int exponent = (bits & 0x7fff) >> f.fraction_bits;
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if ((bits & 0x7fff) == f.infinity()) return sign * std::numeric_limits<double>::infinity();
    if ((bits & 0x7fff) > f.infinity()) return std::numeric_limits<double>::quiet_NaN();
    const int significand = exponent == 0 ? fraction : fraction + (1 << f.fraction_bits);
    return sign * std::ldexp(significand, std::max(exponent, 1) - f.bias - f.fraction_bits);
  }

  static std::uint16_t stored(double value) {
    std::byte bytes[4];  // as wide as the widest type, which the compiler can't rule out
    store(bytes, GetParam().dtype, 0, value);
    std::uint16_t bits;
    std::memcpy(&bits, bytes, 2);
    return bits;
  }
};
std::string format_name(const testing::TestParamInfo<Format16>& tested) { return to_string(tested.param.dtype); }
INSTANTIATE_TEST_SUITE_P(All, Float16,
                         testing::Values(Format16{DType::bf16, GATEFOLD_DTYPE_BF16, 7, 127,
                                                  [](std::uint16_t bits) { return bf16_to_float(bits); },
                                                  [](float value) { return float_to_bf16(value); }},
                                         Format16{DType::fp16, GATEFOLD_DTYPE_FP16, 10, 15,
                                                  [](std::uint16_t bits) { return fp16_to_float(bits); },
                                                  [](float value) { return float_to_fp16(value); }}),
                         format_name);

TEST_P(Float16, EveryPatternHasItsValueAndComesBack) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double value = definition(bits);
    const float single = GetParam().to_float(bits);
    std::byte bytes[4];  // as wide as the widest type, which the compiler can't rule out
    std::memcpy(bytes, &bits, 2);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(single)) << pattern;
      ASSERT_TRUE(std::isnan(load(bytes, GetParam().dtype, 0))) << pattern;
      ASSERT_TRUE(std::isnan(definition(GetParam().from_float(single)))) << pattern;
      ASSERT_TRUE(std::isnan(definition(stored(value)))) << pattern;
      continue;
    }
    ASSERT_EQ(single, value) << pattern;
    ASSERT_EQ(std::signbit(single), std::signbit(value)) << pattern;
    ASSERT_EQ(load(bytes, GetParam().dtype, 0), value) << pattern;
    ASSERT_EQ(GetParam().from_float(single), bits);
    ASSERT_EQ(stored(value), bits);
    ASSERT_EQ(test::decode(GetParam().public_dtype, bytes), value) << "the tests' own decoder, pattern " << pattern;
  }
}

// fp32 holds the middle of two neighbours exactly: it goes to the even one, and a hair to either side decides.
TEST_P(Float16, TiesGoToEvenAndNothingElseDoes) {
  const std::uint16_t infinity = GetParam().infinity();
  for (std::uint16_t below = 0; below < infinity; ++below) {
    const auto above = static_cast<std::uint16_t>(below + 1);
    // The step beyond the largest finite value is as wide as the one before it.
    const double upper = above < infinity ? definition(above)
                                          : 2.0 * definition(below) - definition(static_cast<std::uint16_t>(below - 1));
    const double middle = 0.5 * (definition(below) + upper);
    const auto single = static_cast<float>(middle);
    const std::uint16_t even = (below & 1U) == 0 ? below : above;
    for (const double s : {1.0, -1.0}) {
      const auto signed_pattern = [&](unsigned bits) { return s < 0.0 ? bits | 0x8000U : bits; };
      ASSERT_EQ(GetParam().from_float(static_cast<float>(s) * single), signed_pattern(even)) << below;
      ASSERT_EQ(GetParam().from_float(static_cast<float>(s) * std::nextafter(single, 0.0F)), signed_pattern(below));
      ASSERT_EQ(
          GetParam().from_float(static_cast<float>(s) * std::nextafter(single, std::numeric_limits<float>::infinity())),
          signed_pattern(above));
      // From double precision too, where rounding to fp32 first would make a tie of what is none.
      ASSERT_EQ(stored(s * middle), signed_pattern(even)) << below;
      ASSERT_EQ(stored(s * std::nextafter(middle, 0.0)), signed_pattern(below)) << below;
      ASSERT_EQ(stored(s * std::nextafter(middle, 1e300)), signed_pattern(above)) << below;
    }
  }
}

TEST_P(Float16, AnyFloatIsRoundedAsTheDefinitionHasIt) {
  test::Random random = test::test_random();
  for (int i = 0; i < 300000; ++i) {
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(single)) continue;
    const double expected = test::round_to(GetParam().public_dtype, single);
    ASSERT_EQ(definition(GetParam().from_float(single)), expected) << single;
    ASSERT_EQ(definition(stored(single)), expected) << single;
  }
}

TEST_P(Float16, BeyondEveryType) {
  EXPECT_EQ(stored(1e300), GetParam().infinity());
  EXPECT_EQ(stored(-1e300), GetParam().infinity() | 0x8000U);
  EXPECT_EQ(stored(1e-300), 0U);
  EXPECT_EQ(stored(-1e-300), 0x8000U);
  EXPECT_EQ(GetParam().from_float(std::numeric_limits<float>::infinity()), GetParam().infinity());
}

TEST(Fp32, StoreRoundsOnceAndLoadReadsBack) {
  std::byte bytes[8];
  store(bytes, DType::fp32, 1, 1.0 + 0x1p-24);  // a tie
  EXPECT_EQ(load(bytes, DType::fp32, 1), 1.0);
  store(bytes, DType::fp32, 1, 1.0 + 0x1p-24 + 0x1p-50);
  EXPECT_EQ(load(bytes, DType::fp32, 1), 1.0 + 0x1p-23);
}

}  // namespace
}  // namespace gatefold
