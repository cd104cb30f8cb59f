#include <immintrin.h>

#include "cpu/loops/nest.hpp"

// fp32, fp16 and bf16 by AVX2, FMA and F16C. Of 16 registers 12 hold sums, three x of as many tokens, one the weights;
// of bf16 8 hold sums of two tokens, for with the mask 12 would be 17, and what is stored and loaded again waits.
namespace gatefold::cpu {
namespace {

// The first `count` of 8 words.
GATEFOLD_LOOP __m256i first_words(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// The first `count` of `size` elements of 16 bits, then zeros.
template <int size>
struct Rest {
  std::uint16_t elements[size];

  GATEFOLD_LOOP Rest(const std::uint16_t* from, int count) {
    for (int i = 0; i < size; ++i) elements[i] = i < count ? from[i] : std::uint16_t{0};
  }
};

struct Avx2Sums {
  using Vector = __m256;
  using Operand = __m256;
  static constexpr int lanes = 8;
  static constexpr bool parts_share_words = false;
  static constexpr int pairs = 1;
  static constexpr int tile_tokens = 3;
  static constexpr int streamed_tokens = 3;
  static constexpr int widened_tokens = tile_tokens;
  static constexpr std::int64_t widened_cache = widened_in_2_mib;
  static constexpr std::int64_t k_block = 1024;

  static GATEFOLD_LOOP Vector zero() { return _mm256_setzero_ps(); }
  static GATEFOLD_LOOP void store(float* out, __m256 values) { _mm256_storeu_ps(out, values); }
  static GATEFOLD_LOOP __m256 load_widened(const float* x) { return _mm256_loadu_ps(x); }
  static GATEFOLD_LOOP Vector multiply_add(Operand a, Operand b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }

  // The upper half of each added to the lower one.
  static GATEFOLD_LOOP __m256 add_halves(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  }

  template <int tokens>
  static GATEFOLD_LOOP void add_sums(const Vector (&sums)[tokens][tile_rows_of], float* out, bool first) {
#pragma GCC unroll 4
    for (int t = 0; t < tokens; ++t) {
      const __m256 rows02 = add_halves(sums[t][0], sums[t][2]);
      const __m256 rows13 = add_halves(sums[t][1], sums[t][3]);
      // In the lower half rows 0 and 1, in the upper one 2 and 3: 0a 1a 0b 1b.
      const __m256 pairs_of = _mm256_add_ps(_mm256_unpacklo_ps(rows02, rows13), _mm256_unpackhi_ps(rows02, rows13));
      const __m128 rows01 = _mm256_castps256_ps128(pairs_of);
      const __m128 rows23 = _mm256_extractf128_ps(pairs_of, 1);
      const __m128 folded = _mm_add_ps(_mm_movelh_ps(rows01, rows23), _mm_movehl_ps(rows23, rows01));
      float* to = out + t * tile_rows_of;
      _mm_storeu_ps(to, first ? folded : _mm_add_ps(folded, _mm_loadu_ps(to)));
    }
  }
};

// 4 KiB of a row: then the first tokens read it in streams of its own (first_in_streams). In fp32 three tokens' x take
// 24 KiB, which stay in the first-level cache.
constexpr std::int64_t block_of_16_bits = 2048;

struct Float : Avx2Sums {
  using Element = float;
  static constexpr bool in_place = true;
  static constexpr int parts = 1;
  static constexpr std::int64_t step = 8;

  static GATEFOLD_LOOP Operand load(const float* from, int /*part*/) { return _mm256_loadu_ps(from); }
  static GATEFOLD_LOOP Operand load_rest(const float* from, int /*part*/, int count) {
    return _mm256_maskload_ps(from, first_words(count));
  }
};

struct Fp16 : Avx2Sums {
  using Element = std::uint16_t;
  static constexpr std::int64_t k_block = block_of_16_bits;
  static constexpr bool in_place = false;
  static constexpr int parts = 1;
  static constexpr std::int64_t step = 8;

  static GATEFOLD_LOOP Operand load(const Element* from, int /*part*/) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static GATEFOLD_LOOP Operand load_rest(const Element* from, int part, int count) {
    return load(Rest<8>(from, count).elements, part);
  }
};

// Two bf16 share a word: the first becomes an fp32 by a shift, the second by a mask.
struct BFloat : Avx2Sums {
  using Element = std::uint16_t;
  static constexpr int tile_tokens = 2;
  static constexpr std::int64_t k_block = block_of_16_bits;
  static constexpr bool in_place = false;
  static constexpr int parts = 2;
  static constexpr bool parts_share_words = true;
  static constexpr std::int64_t step = 16;

  static GATEFOLD_LOOP Operand load(const Element* from, int part) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm256_castsi256_ps(part == 0 ? _mm256_slli_epi32(words, 16)
                                         : _mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  static GATEFOLD_LOOP Operand load_rest(const Element* from, int part, int count) {
    return load(Rest<16>(from, count).elements, part);
  }
};

constexpr Kernel kernels[] = {make_kernel<Float>("avx2", DType::fp32), make_kernel<Fp16>("avx2", DType::fp16),
                              make_kernel<BFloat>("avx2", DType::bf16)};

}  // namespace

KernelList avx2_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
