#pragma once

#include "cpu/loops/amx_pack.hpp"
#include "cpu/loops/avx512_products.hpp"

// Numbers as sums of bf16, for the matrix unit: an fp32's 24 significant bits are 8 + 8 + 8, an fp16's 11 are 8 + 3, so
// that a number is the sum of three or two bf16 exactly.
//
// Beside what amx_pack.hpp takes of an operand type: `products` of parts that count; Exact, the policy of sums that are
// formed anew; `run`, elements of k that are split at a time; `sums_depth`, elements that are added up in a tile;
// `span`, elements of a row that are read one after the other; `scale`, a power of two by which a number is multiplied
// before it is split.
namespace gatefold::cpu {
namespace {

GATEFOLD_LOOP __m512i upper_mask() { return _mm512_set1_epi32(static_cast<int>(0xffff0000U)); }

// The upper halves of two vectors' words, side by side.
GATEFOLD_LOOP __m512i upper_halves(__m512i high, __m512i low) {
  constexpr int a_and_c_or_b = 0xec;
  return _mm512_ternarylogic_epi32(high, _mm512_srli_epi32(low, 16), upper_mask(), a_and_c_or_b);
}

// What a part leaves of numbers; exact.
GATEFOLD_LOOP __m512 without_part(__m512 values, __m512i part) {
  return _mm512_sub_ps(values, _mm512_castsi512_ps(_mm512_and_si512(part, upper_mask())));
}

// The first part is rounded to nearest, if it is to be: then what is left has either sign, and so have the products
// that are left out. The others are cut off.
template <bool rounded, int count>
GATEFOLD_LOOP void split_words(__m512 high, __m512 low, __m512i (&parts)[count]) {
  const __m512i half = _mm512_set1_epi32(0x8000);
#pragma GCC unroll 3
  for (int part = 0; part < count; ++part) {
    __m512i high_bits = _mm512_castps_si512(high);
    __m512i low_bits = _mm512_castps_si512(low);
    if (rounded && part == 0) {
      high_bits = _mm512_add_epi32(high_bits, half);
      low_bits = _mm512_add_epi32(low_bits, half);
    }
    parts[part] = upper_halves(high_bits, low_bits);
    high = without_part(high, high_bits);
    low = without_part(low, low_bits);
  }
}

constexpr __mmask16 first_of(std::int64_t left) {
  return static_cast<__mmask16>(left >= 16 ? 0xffffU : left <= 0 ? 0U : (1U << left) - 1U);
}

constexpr std::int64_t page = 4096;

struct Fp32Parts {
  using Element = float;
  using Exact = Float;
  static constexpr DType dtype = DType::fp32;
  static constexpr int parts = 3;
  static constexpr int products = 6;
  static constexpr std::int64_t run = 64;
  static constexpr std::int64_t sums_depth = 128;
  static constexpr std::int64_t span = 2 * page / static_cast<std::int64_t>(sizeof(Element));
  static constexpr std::int64_t block = run;
  static constexpr float scale = 0x1p30F;

  static GATEFOLD_LOOP void split(const float* from, std::int64_t left, __m512i (&out)[3]) {
    const __m512 up = _mm512_set1_ps(scale);
    const bool whole = left >= step;
    const __m512 first = whole ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(first_of(left), from);
    const __m512 second = whole ? _mm512_loadu_ps(from + 16) : _mm512_maskz_loadu_ps(first_of(left - 16), from + 16);
    split_words<true>(_mm512_mul_ps(first, up), _mm512_mul_ps(second, up), out);
  }
};

struct Fp16Parts {
  using Element = std::uint16_t;
  using Exact = Fp16;
  static constexpr DType dtype = DType::fp16;
  static constexpr int parts = 2;
  static constexpr int products = 4;
  static constexpr std::int64_t run = 128;
  static constexpr std::int64_t sums_depth = 1024;
  static constexpr std::int64_t span = 2 * page / static_cast<std::int64_t>(sizeof(Element));
  static constexpr std::int64_t block = run;
  static constexpr float scale = 1.0F;

  static GATEFOLD_LOOP void split(const std::uint16_t* from, std::int64_t left, __m512i (&out)[2]) {
    const std::uint32_t there = left < step ? (std::uint32_t{1} << left) - 1U : ~std::uint32_t{0};
    const __m512i both = _mm512_maskz_loadu_epi16(there, from);
    split_words<false>(_mm512_cvtph_ps(_mm512_castsi512_si256(both)),
                       _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)), out);
  }
};

// Two buffers of 32 rows' parts in a run: [step][part][buffer][row group][16 rows of 64 bytes]. One is filled while the
// other is multiplied. A load waits for earlier stores to the same 12 bits of an address, and these never have them.
constexpr std::int64_t buffer_bytes = 2 * tile_bytes;
constexpr std::int64_t part_bytes = 2 * buffer_bytes;
template <class Type>
constexpr std::int64_t step_bytes = Type::parts * part_bytes;
template <class Type>
constexpr std::int64_t buffers_bytes = Type::run / step * step_bytes<Type>;

// Elements [begin, begin + count) of 32 rows of weights.
struct Rows {
  const std::byte* const* rows = nullptr;  // null: none
  std::int64_t row = 0;                    // in the panel
  std::int64_t begin = 0;
  std::int64_t count = 0;

  Rows run(std::int64_t first, std::int64_t length) const {
    const std::int64_t left = begin + count - first;
    return {rows, row, first, left < length ? left : length};
  }
};

// Asks for rows that come later, to the second-level cache, a line of each of four rows at a time: the processor's own
// fetch follows four consecutive streams best (docs/kernels/cpu_log.md).
class Fetcher {
 public:
  Fetcher() = default;
  Fetcher(const Rows& rows, std::int64_t element)
      : rows_(rows.rows), offset_(rows.begin * element), end_(offset_ + rows.count * element), at_(offset_) {}

  GATEFOLD_LOOP void take() {
    if (rows_ == nullptr) return;
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < streams; ++i) __builtin_prefetch(rows_[i * apart] + at_, 0, 2);
    at_ += line;
    if (at_ < end_) return;
    at_ = offset_;
    ++rows_;
    if (++done_ == apart) rows_ = nullptr;
  }

 private:
  static constexpr std::int64_t streams = 4;
  static constexpr std::int64_t apart = tile_rows / streams;

  const std::byte* const* rows_ = nullptr;
  std::int64_t offset_ = 0;
  std::int64_t end_ = 0;
  std::int64_t at_ = 0;
  std::int64_t done_ = 0;
};

// Splits rows while others are multiplied, one at a time.
template <class Type>
class Splitter {
 public:
  Splitter(const Rows& rows, std::byte* out, const Fetcher& fetcher)
      : rows_(rows.rows),
        begin_(rows.begin),
        count_(rows.count),
        left_(rows.rows == nullptr ? 0 : tile_rows),
        out_(out),
        fetcher_(fetcher) {}

  const Fetcher& fetcher() const { return fetcher_; }

  GATEFOLD_LOOP void take() {
    if (left_ == 0) return;
    const auto* from = reinterpret_cast<const typename Type::Element*>(*rows_) + begin_;
    if (count_ == Type::run) {
#pragma GCC unroll 4
      for (std::int64_t k = 0; k < Type::run; k += step) {
        split(from + k, step, out_ + k / step * step_bytes<Type>);
      }
    } else {
      for (std::int64_t k = 0; k < count_; k += step) split(from + k, count_ - k, out_ + k / step * step_bytes<Type>);
    }
    fetcher_.take();
    ++rows_;
    out_ += 64;  // the second group's tile follows the first's
    --left_;
  }

  void finish() {
    while (left_ > 0) take();
  }

 private:
  static GATEFOLD_LOOP void split(const typename Type::Element* from, std::int64_t left, std::byte* to) {
    __m512i parts[Type::parts];
    Type::split(from, left, parts);
#pragma GCC unroll 3
    for (int part = 0; part < Type::parts; ++part) _mm512_store_si512(to + part * part_bytes, parts[part]);
  }

  const std::byte* const* rows_;
  std::int64_t begin_;
  std::int64_t count_;
  std::int64_t left_;
  std::byte* out_;
  Fetcher fetcher_;
};

}  // namespace
}  // namespace gatefold::cpu
