#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "core/float16.hpp"
#include "cpu/loops/kernel.hpp"

// The loops over a panel (cpu/loops/nest.hpp, avx512_outer.hpp), by every kernel that this machine can run. Of the two
// ways to ask for rows ahead of their use a machine takes one, and by its caches it depends whether weights are widened
// or operands packed; here all run.
namespace gatefold::cpu {
namespace {

// Those that the template makes: the matrix unit's take packed tokens alone.
std::vector<const Kernel*> kernels_of(DType dtype) {
  std::vector<const Kernel*> kernels = kernels_for(dtype);
  std::erase_if(kernels, [](const Kernel* kernel) { return kernel->packed_tokens > 0 && kernel->outer.from == 0; });
  return kernels;
}

std::byte* aligned(std::vector<std::byte>& bytes) {
  return bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64) % 64;
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

  Rows from(std::int64_t first) const {
    Rows rest = *this;
    rest.bytes_.erase(rest.bytes_.begin(), rest.bytes_.begin() + first * stride_);
    return rest;  // whose pointers() are not to be used
  }

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
  const std::int64_t scratch_bytes =
      panel.packed.groups > 0 ? kernel.outer.scratch_bytes : kernel.scratch_for(panel.widens, panel.row_count);
  std::vector<std::byte> scratch(static_cast<std::size_t>(scratch_bytes) + 64);
  panel.rows = weights.pointers();
  panel.x = x.row(0);
  panel.x_stride = x.stride();
  panel.sums = sums.data();
  panel.scratch = aligned(scratch);
  kernel.multiply(panel);
  EXPECT_EQ(sums.back(), untouched);
  for (std::int64_t r = 0; r < panel.row_count; ++r) {
    for (std::int64_t t = 0; t < panel.tokens; ++t) {
      double exact = 0;
      for (std::int64_t k = 0; k < panel.depth; ++k) exact += weights.at(r, k) * x.at(t, k);
      ASSERT_EQ(sums[static_cast<std::size_t>((r / 4 * panel.tokens + t) * 4 + r % 4)], exact)
          << kernel.name << ", depth " << panel.depth << ", row " << r << " of " << panel.row_count << ", token " << t
          << " of " << panel.tokens << ", fetched " << static_cast<int>(panel.fetch) << ", widens: " << panel.widens
          << ", groups: " << panel.packed.groups;
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
          for (const Fetch fetch : {Fetch::to_first_level, Fetch::to_second_level, Fetch::at_a_pace}) {
            for (const bool widens : {false, true}) {
              if (widens && kernel->widened_from == 0) continue;
              panel.fetch = fetch;
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

// By rows, as x is packed.
void pack_rows(const Kernel& kernel, const Rows& x, std::int64_t depth, const PackedX& packed) {
  for (std::int64_t group = 0; group < packed.groups; ++group) {
    const std::int64_t first = group * kernel.packed_tokens;
    kernel.pack({.x = x.row(first),
                 .x_stride = x.stride(),
                 .tokens = std::min(kernel.packed_tokens, packed.tokens - first),
                 .depth = depth,
                 .packed = packed,
                 .group = group});
  }
}

// [quad][token][4] of x. Behind the last element: NaN.
std::vector<std::byte> quads_of(const Rows& x, std::int64_t tokens, std::int64_t depth, DType dtype) {
  std::vector<std::byte> quads(static_cast<std::size_t>((depth + 3) / 4 * tokens * 4 * size_of(dtype)),
                               std::byte{0xff});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t k = 0; k < depth; ++k) store(quads.data(), dtype, (k / 4 * tokens + t) * 4 + k % 4, x.at(t, k));
  }
  return quads;
}

// By quads, as an mlp's h is packed: some columns at a time, from the last to the first, since items come in any order.
void pack_quads(const Kernel& kernel, const Rows& x, std::int64_t depth, const PackedX& packed) {
  const std::vector<std::byte> quads = quads_of(x, packed.tokens, depth, kernel.dtype);
  const std::int64_t quad = 4 * size_of(kernel.dtype);
  for (std::int64_t group = 0; group < packed.groups; ++group) {
    const std::int64_t first = group * kernel.packed_tokens;
    const std::int64_t unit = 3 * kernel.outer.columns;
    for (std::int64_t begin = (depth - 1) / unit * unit; begin >= 0; begin -= unit) {
      kernel.outer.pack_quads({.values = quads.data() + (begin / 4 * packed.tokens + first) * quad,
                               .quad_stride = packed.tokens * quad,
                               .tokens = std::min(kernel.packed_tokens, packed.tokens - first),
                               .begin = begin,
                               .end = std::min(begin + unit, depth),
                               .depth = depth,
                               .packed = packed,
                               .group = group});
    }
  }
}

TEST_P(Panel, OuterProductsAreExact) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  bool any = false;
  for (const Kernel* kernel : kernels_of(GetParam())) {
    if (kernel->outer.from == 0) continue;
    any = true;
    for (const std::int64_t depth : {1, 31, 300, 1024, 2048, 3100}) {
      const std::int64_t line = 64 / size_of(GetParam());
      const std::int64_t packed_row = (depth + line - 1) / line * 64;
      for (const std::int64_t row_count : {4, 16, 60, 64, 68, 128}) {
        const Rows weights(row_count, depth, depth + 3, GetParam(), random);
        const Rows next(row_count, depth, depth, GetParam(), random);
        for (const std::int64_t tokens : {1, 6, 7, 11, 12, 13, 24, 41}) {
          const Rows x(tokens, depth, depth + 1, GetParam(), random);
          // What lies behind the last token's last element is read, and counts nowhere: NaN.
          std::vector<std::byte> bytes(static_cast<std::size_t>(tokens * packed_row) + 128, std::byte{0xff});
          std::vector<std::byte> by_quads = bytes;
          const PackedX packed{aligned(bytes), (tokens + kernel->packed_tokens - 1) / kernel->packed_tokens, tokens};
          pack_rows(*kernel, x, depth, packed);
          pack_quads(*kernel, x, depth, {aligned(by_quads), packed.groups, tokens});
          const std::int64_t all = tokens * packed_row;
          ASSERT_EQ(std::memcmp(packed.base, aligned(by_quads), static_cast<std::size_t>(all)), 0)
              << tokens << " tokens of depth " << depth << " packed by rows and by quads";
          for (std::vector<std::byte>* of : {&bytes, &by_quads}) {
            for (const std::byte* at = aligned(*of) + all; at <= &of->back(); ++at) {
              ASSERT_EQ(*at, std::byte{0xff}) << "written behind " << tokens << " tokens of depth " << depth;
            }
          }
          PanelProduct panel;
          panel.row_count = row_count;
          panel.tokens = tokens;
          panel.depth = depth;
          panel.packed = packed;
          panel.next_rows = tokens % 2 == 0 ? next.pointers() : nullptr;
          expect_exact(*kernel, panel, weights, x);
          if (tokens <= kernel->packed_tokens) continue;
          // From the second group on.
          const Rows behind = x.from(kernel->packed_tokens);
          panel.group = 1;
          panel.tokens = tokens - kernel->packed_tokens;
          expect_exact(*kernel, panel, weights, behind);
        }
      }
    }
  }
  if (!any) GTEST_SKIP() << "no kernel of this machine has outer products of " << to_string(GetParam());
}

}  // namespace
}  // namespace gatefold::cpu
