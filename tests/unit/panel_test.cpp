#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/float16.hpp"
#include "cpu/loops/kernel.hpp"

// The loops over a panel (cpu/loops/nest.hpp), by every kernel that this machine can run. Of the two ways to ask for
// rows ahead of their use a machine takes one, and by its caches it depends whether weights are widened; here all run.
namespace gatefold::cpu {
namespace {

// Those that the template makes: the matrix unit's take packed tokens.
std::vector<const Kernel*> kernels_of(DType dtype) {
  std::vector<const Kernel*> kernels = kernels_for(dtype);
  std::erase_if(kernels, [](const Kernel* kernel) { return kernel->packed_tokens > 0; });
  return kernels;
}

// Rows of sixteenths from -1 to 1: their products are 256ths, and sums of up to 2^16 of them are exact in fp32.
class Rows {
 public:
  Rows(std::int64_t count, std::int64_t depth, std::int64_t stride, DType dtype, std::mt19937_64& random)
      : dtype_(dtype), stride_(stride * size_of(dtype)), bytes_(static_cast<std::size_t>(count * stride_)) {
    std::uniform_int_distribution<int> sixteenths(-16, 16);
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::int64_t k = 0; k < depth; ++k)
        store(bytes_.data() + row * stride_, dtype, k, sixteenths(random) / 16.0);
      pointers_.push_back(this->row(row));
    }
  }

  const std::byte* row(std::int64_t r) const { return bytes_.data() + r * stride_; }
  const std::byte* const* pointers() const { return pointers_.data(); }
  std::int64_t stride() const { return stride_; }
  double at(std::int64_t r, std::int64_t k) const { return load(row(r), dtype_, k); }

 private:
  DType dtype_;
  std::int64_t stride_;  // bytes
  std::vector<std::byte> bytes_;
  std::vector<const std::byte*> pointers_;
};

class Panel : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, Panel, testing::Values(DType::fp32, DType::fp16, DType::bf16));

void expect_exact(const Kernel& kernel, PanelProduct panel, const Rows& weights, const Rows& x) {
  constexpr float untouched = -12345.0F;
  std::vector<float> sums(static_cast<std::size_t>(panel.row_count * panel.tokens + 1), untouched);
  std::vector<std::byte> scratch(static_cast<std::size_t>(kernel.scratch_for(panel.widens, panel.row_count)) + 64);
  panel.rows = weights.pointers();
  panel.x = x.row(0);
  panel.x_stride = x.stride();
  panel.sums = sums.data();
  panel.scratch = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
  kernel.multiply(panel);
  EXPECT_EQ(sums.back(), untouched);
  for (std::int64_t r = 0; r < panel.row_count; ++r) {
    for (std::int64_t t = 0; t < panel.tokens; ++t) {
      double exact = 0;
      for (std::int64_t k = 0; k < panel.depth; ++k) exact += weights.at(r, k) * x.at(t, k);
      ASSERT_EQ(sums[static_cast<std::size_t>((r / 4 * panel.tokens + t) * 4 + r % 4)], exact)
          << kernel.name << ", depth " << panel.depth << ", row " << r << " of " << panel.row_count << ", token " << t
          << " of " << panel.tokens << ", spares the first level: " << panel.spares_first_level
          << ", widens: " << panel.widens;
    }
  }
}

TEST_P(Panel, SumsAreExactHoweverRowsAreRead) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (const std::int64_t depth : {1, 5, 300, 1024, 1027, 3100}) {
    for (const std::int64_t row_count : {4, 36}) {
      const Rows weights(row_count, depth, depth + 3, GetParam(), random);
      const Rows next(row_count, depth, depth, GetParam(), random);
      for (const std::int64_t tokens : {1, 2, 3, 4, 5, 7, 9, 33, 47, 48, 51}) {
        const Rows x(tokens, depth, depth + 1, GetParam(), random);
        PanelProduct panel;
        panel.row_count = row_count;
        panel.tokens = tokens;
        panel.depth = depth;
        for (const Kernel* kernel : kernels_of(GetParam())) {
          for (const bool spares : {false, true}) {
            for (const bool widens : {false, true}) {
              if (widens && kernel->widened_from == 0) continue;
              panel.spares_first_level = spares;
              panel.widens = widens;
              panel.next_rows = nullptr;
              expect_exact(*kernel, panel, weights, x);
              panel.next_rows = next.pointers();
              expect_exact(*kernel, panel, weights, x);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::cpu
