#include "wide_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>

#include "support/random.hpp"

// Sums of squares whose exponents fp32 does not have, by its arithmetic.
namespace gatefold::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t batch = 16;  // terms that are added up at a time

// A term is rounded once, and no sum of positive numbers errs by more than its additions' 2^-24 each: four of a batch,
// one of each batch, and as many of the scaling, which loses nothing else but what is below 2^-126 of the largest term.
// The root halves that, and is itself rounded four times at most: with up to three batches (1 + 4 + 3) / 2 + 4 times
// 2^-24.
constexpr double bound = 0x1p-21;

class WideSums {
 public:
  WideSums(std::size_t rows, std::size_t number) : first(rows, 0.0), terms(rows * number, 0.0) {}

  double& term(std::size_t row, std::size_t i) { return terms[i * first.size() + row]; }
  long double sum(std::size_t row) const {
    long double result = first[row];
    for (std::size_t i = row; i < terms.size(); i += first.size()) result += terms[i];
    return result;
  }
  std::vector<float> inverse_roots() const { return wide_inverse_roots(first, terms); }

  std::vector<double> first, terms;
};

double random_number(Random& random, int exponent) {
  return std::ldexp(std::uniform_real_distribution<double>(1.0, 2.0)(random), exponent);
}

// Sums whose roots fp32 has, of terms that are alike or spread over as much as squares of fp32 are: 2^554.
TEST(SwapFfnWideSum, IsWithinItsBound) {
  Random random = test_random();
  constexpr std::size_t rows = 20000;
  for (const std::size_t number : {batch, 2 * batch, 3 * batch}) {
    WideSums sums(rows, number);
    double largest = 0.0;
    for (std::size_t row = 0; row < rows; ++row) {
      const int top = std::uniform_int_distribution<int>(-240, 240)(random);
      const int spread = std::uniform_int_distribution<int>(0, 3)(random) * 180;
      const auto exponent = [&] { return top - std::uniform_int_distribution<int>(0, spread)(random); };
      sums.first[row] = random() % 4 == 0 ? 0.0 : random_number(random, exponent());
      for (std::size_t i = 0; i < number; ++i) {
        sums.term(row, i) = random() % 4 == 0 ? 0.0 : random_number(random, exponent());
      }
      sums.term(row, random() % number) = random_number(random, top);
    }
    const std::vector<float> roots = sums.inverse_roots();
    for (std::size_t row = 0; row < rows; ++row) {
      const auto truth = static_cast<double>(1.0L / std::sqrt(sums.sum(row)));
      const double error = std::abs(static_cast<double>(roots[row]) - truth) / truth;
      ASSERT_LE(error, bound) << "of " << number << " terms, row " << row << ": " << roots[row] << ", truth " << truth;
      largest = std::max(largest, error);
    }
    RecordProperty("largest_of_" + std::to_string(number), std::to_string(largest));
  }
}

TEST(SwapFfnWideSum, PowersOfTwoAreExact) {
  for (int exponent = -125; exponent <= 125; ++exponent) {
    WideSums sums(3, batch);
    sums.first[0] = sums.term(1, 3) = std::ldexp(1.0, 2 * exponent);
    for (std::size_t i = 0; i < batch; ++i) sums.term(2, i) = std::ldexp(1.0, 2 * exponent - 4);
    for (const float root : sums.inverse_roots()) ASSERT_EQ(root, std::ldexp(1.0F, -exponent));
  }
}

// Of a row of zeros.
TEST(SwapFfnWideSum, MayBeOfEpsAlone) {
  WideSums sums(1, batch);
  sums.first[0] = 1e-6 * 1024.0;
  EXPECT_NEAR(sums.inverse_roots()[0] * std::sqrt(1e-6 * 1024.0), 1.0, bound);
}

TEST(SwapFfnWideSum, InfinityAndNanAreKept) {
  WideSums sums(6, 2 * batch);
  for (std::size_t row = 0; row < 6; ++row) {
    sums.first[row] = 1e-3;
    for (std::size_t i = 0; i < 2 * batch; ++i) sums.term(row, i) = 1.0;
  }
  sums.term(0, 5) = infinity;
  sums.term(1, 2 * batch - 1) = infinity;
  sums.term(2, 0) = nan;
  sums.term(3, 2 * batch - 1) = nan;
  sums.term(4, 1) = infinity;
  sums.term(4, 17) = nan;
  const std::vector<float> roots = sums.inverse_roots();
  EXPECT_EQ(roots[0], 0.0F);
  EXPECT_EQ(roots[1], 0.0F);
  for (const std::size_t row : {2, 3, 4}) EXPECT_TRUE(std::isnan(roots[row])) << "row " << row << ": " << roots[row];
  EXPECT_NEAR(roots[5] * std::sqrt(32.001), 1.0, bound);
}

}  // namespace
}  // namespace gatefold::test
