#include "cpu/loops/amx_split.hpp"

// fp32 and fp16 by the matrix unit (AMX), which multiplies bf16: as sums of parts (amx_split.hpp). A product is the sum
// of its parts' products, each exact in fp32:
//
//     fp32   x = x0 + x1 + x2,  |x1| <= 2^-8 |x|,  |x2| < 2^-16 |x|
//            x w = x0 w0 + x0 w1 + x1 w0 + x0 w2 + x1 w1 + x2 w0 + less than 2^-22 |x w|        6 products
//     fp16   x w = x0 w0 + x0 w1 + x1 w0 + x1 w1                                                4, exactly
//
// Six products of 16 x 16 x 32 terms in 16 cycles each are 85 terms a cycle; FMA does 32.
//
//   for each span of k, of 32 rows               few tokens: 8 KiB of a row; many: a run
//     for each run of 64 or 128 elements         its parts lie in 12 or 16 KiB of the first-level cache; those of the
//                                                next run are made meanwhile, some rows in each product's time
//       for each 32 tokens                       x as amx_pack.hpp packs it, in parts, from the second-level cache
//         2 x 2 tiles of sums                    they wait in the scratch from one run to the next; every 128 elements
//                                                (fp16: 1024) they are added to the panel's and begin anew, so that few
//                                                roundings follow one another
//
// Exponents. The unit takes a subnormal number for 0, so fp32 is multiplied by 2^30 before it is split, x and weights
// alike: then no part of any number is subnormal, and no product that is lost is as large as 2^-186. Sums are
// multiplied by 2^-60. What leaves the range so, or is infinite or NaN, makes a sum infinite or NaN, and each such sum
// is formed anew by FMA. So a sum's bits depend on its row and its token alone.
namespace gatefold::cpu {
namespace {

// With more tokens, x of a span leaves the second-level cache before the next 32 rows.
constexpr std::int64_t many_tokens = 160;

// Up to so many tokens FMA's loops are faster: they read memory at its full speed. Measured (docs/kernels/cpu_log.md).
constexpr std::int64_t few_tokens = 6;

// Bytes of x that stay in the second-level cache for all spans of 32 rows.
constexpr std::int64_t x_in_cache = std::int64_t{1} << 20;

// The scratch: split weights, then the sums.
template <class Type>
constexpr std::int64_t scratch_bytes = buffers_bytes<Type> + waiting_sums * 4;

// One step: every product of a part of x and one of the weights that counts, in the same order for one group of tokens
// as for two. `other` is the second group's x, from the first one's.
template <class Type, int splits>
GATEFOLD_LOOP void multiply_two(const std::byte* weights, const std::byte* x, std::int64_t other,
                                Splitter<Type>& splitter) {
#pragma GCC unroll 3
  for (int of_x = 0; of_x < Type::parts; ++of_x) {
    _tile_loadd(6, x + of_x * tile_bytes, 64);
    _tile_loadd(7, x + other + of_x * tile_bytes, 64);
#pragma GCC unroll 3
    for (int part = 0; part < Type::parts; ++part) {
      if (of_x + part > 2) continue;
      _tile_loadd(4, weights + part * part_bytes, 64);
      _tile_loadd(5, weights + part * part_bytes + tile_bytes, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 5, 6);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
      for (int i = 0; i < splits; ++i) splitter.take();
    }
  }
}

// One group leaves registers for two parts of the weights, in 2 and 3, 4 and 5; x is in 6, a third part in 7.
template <class Type, int splits>
GATEFOLD_LOOP void multiply_one(const std::byte* weights, const std::byte* x, Splitter<Type>& splitter) {
  const auto split = [&] {
    for (int i = 0; i < splits; ++i) splitter.take();
  };
  _tile_loadd(6, x, 64);
  _tile_loadd(2, weights, 64);
  _tile_loadd(3, weights + tile_bytes, 64);
  _tile_dpbf16ps(0, 2, 6);
  _tile_dpbf16ps(1, 3, 6);
  split();
  _tile_loadd(4, weights + part_bytes, 64);
  _tile_loadd(5, weights + part_bytes + tile_bytes, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 5, 6);
  split();
  if constexpr (Type::parts == 3) {
    _tile_loadd(7, weights + 2 * part_bytes, 64);
    _tile_dpbf16ps(0, 7, 6);
    _tile_loadd(7, weights + 2 * part_bytes + tile_bytes, 64);
    _tile_dpbf16ps(1, 7, 6);
    split();
  }
  _tile_loadd(6, x + tile_bytes, 64);
  _tile_dpbf16ps(0, 2, 6);
  _tile_dpbf16ps(1, 3, 6);
  split();
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 5, 6);
  split();
  if constexpr (Type::parts == 3) {
    _tile_loadd(6, x + 2 * tile_bytes, 64);
    _tile_dpbf16ps(0, 2, 6);
    _tile_dpbf16ps(1, 3, 6);
    split();
  }
}

template <class Type, bool two_tokens, int splits>
void multiply_tiles(const PanelProduct& p, const Rows& rows, const std::byte* weights, std::int64_t group, float* sums,
                    Splitter<Type>& splitter) {
  rows.begin % Type::sums_depth == 0 ? zero_sums<two_tokens>() : load_sums<two_tokens>(sums);
  const std::int64_t steps = steps_of(rows.count);
  const std::byte* x = packed_at<Type>(p.packed, rows.begin, p.group + group, p.depth);
  Splitter<Type> own = splitter;  // in registers, since no store of a vector may change it
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::byte* const step_weights = weights + s * step_bytes<Type>;
    const std::byte* const step_x = x + s * Type::parts * tile_bytes;
    if constexpr (two_tokens) {
      multiply_two<Type, splits>(step_weights, step_x, steps * Type::parts * tile_bytes, own);
    } else {
      multiply_one<Type, splits>(step_weights, step_x, own);
    }
  }
  splitter = own;
  store_sums<two_tokens>(sums);
}

template <class Type, int splits>
void multiply_rows(const PanelProduct& p, const Rows& rows, const std::byte* weights, float* sums,
                   Splitter<Type>& splitter) {
  const std::int64_t groups = groups_of(p.tokens);
  for (std::int64_t group = 0; group < groups; group += 2) {
    float* own = tile_sums_at(sums, p, rows.row, group);
    group + 1 < groups ? multiply_tiles<Type, true, splits>(p, rows, weights, group, own, splitter)
                       : multiply_tiles<Type, false, splits>(p, rows, weights, group, own, splitter);
  }
}

// The order in which a panel's rows are multiplied, so much of them at a time that x stays in the cache meanwhile.
struct Order {
  const PanelProduct& panel;
  std::int64_t span;  // elements
  bool rows_first;    // all spans of 32 rows, else all rows of a span

  Rows first() const { return at(panel.rows, 0, 0); }

  // Rows of the next panel after the last of this.
  Rows after(const Rows& now) const {
    const std::int64_t next = now.begin + span;
    const bool last_row = now.row + tile_rows == panel.row_count;
    if (rows_first) {
      if (next < panel.depth) return at(panel.rows, now.row, next);
      if (!last_row) return at(panel.rows, now.row + tile_rows, 0);
    } else {
      if (!last_row) return at(panel.rows, now.row + tile_rows, now.begin);
      if (next < panel.depth) return at(panel.rows, 0, next);
    }
    return panel.next_rows == nullptr ? Rows{.row = panel.row_count} : at(panel.next_rows, panel.row_count, 0);
  }

 private:
  Rows at(const std::byte* const* rows, std::int64_t row, std::int64_t begin) const {
    return {rows + row % panel.row_count, row, begin, panel.depth - begin < span ? panel.depth - begin : span};
  }
};

// Adds the tiles' sums to the panel's.
template <class Type>
void add_sums(const PanelProduct& p, std::int64_t row, bool first, float* sums) {
  const __m512 down = _mm512_set1_ps(1.0F / (Type::scale * Type::scale));
  if (first) {
    turn_sums(p, row, sums, [&](__mmask16 used, float* out, __m512 values) {
      _mm512_mask_storeu_ps(out, used, _mm512_mul_ps(values, down));
    });
  } else {
    turn_sums(p, row, sums, [&](__mmask16 used, float* out, __m512 values) {
      _mm512_mask_storeu_ps(out, used, _mm512_fmadd_ps(values, down, _mm512_maskz_loadu_ps(used, out)));
    });
  }
}

// Sums of four rows with a token, those that are infinite or NaN.
template <class Type>
void form_anew(const PanelProduct& p, std::int64_t row, std::int64_t token, unsigned which) {
  float sums[tile_rows_of];
  PanelProduct one = p;
  one.rows = p.rows + row;
  one.row_count = tile_rows_of;
  one.x = p.x + token * p.x_stride;
  one.tokens = 1;
  one.sums = sums;
  multiply_streams<FetchedToFirstLevel<typename Type::Exact>, 1>(one);
  for (int r = 0; r < tile_rows_of; ++r) {
    if ((which >> r & 1U) != 0) p.sums[row * p.tokens + token * tile_rows_of + r] = sums[r];
  }
}

template <class Type>
void mend_sums(const PanelProduct& p) {
  constexpr int infinite_or_nan = 0x99;
  for (std::int64_t i = 0; i < p.row_count * p.tokens; i += 16) {
    unsigned found = _mm512_fpclass_ps_mask(_mm512_loadu_ps(p.sums + i), infinite_or_nan);
    for (std::int64_t at = i / tile_rows_of; found != 0; found >>= tile_rows_of, ++at) {
      if ((found & 0xfU) != 0) form_anew<Type>(p, at / p.tokens * tile_rows_of, at % p.tokens, found & 0xfU);
    }
  }
}

template <class Type>
Order order_of(const PanelProduct& p) {
  const bool many = p.tokens > many_tokens;
  const std::int64_t bytes_of_x = groups_of(p.tokens) * packed_bytes<Type>(p.depth);
  return {p, many ? Type::run : Type::span, !many && bytes_of_x <= x_in_cache};
}

// As many rows are split in each product's time as leave none to the end.
template <class Type>
void multiply_run(const PanelProduct& p, const Rows& rows, const std::byte* weights, float* sums,
                  Splitter<Type>& splitter) {
  constexpr std::int64_t slots = Type::products * (Type::run / step);
  constexpr int per_slot = (tile_rows + slots - 1) / slots;
  const std::int64_t pairs = (groups_of(p.tokens) + 1) / 2;
  if (pairs == 1) {
    multiply_rows<Type, per_slot>(p, rows, weights, sums, splitter);
  } else if (pairs == 2) {
    multiply_rows<Type, (per_slot + 1) / 2>(p, rows, weights, sums, splitter);
  } else {
    multiply_rows<Type, 1>(p, rows, weights, sums, splitter);
  }
  splitter.finish();
}

struct Buffers {
  std::byte* now;
  std::byte* next;

  void turn() {
    std::byte* const used = now;
    now = next;
    next = used;
  }
};

// All runs of a span. The last one's time is used to split the first of the span after it.
template <class Type>
void multiply_span(const PanelProduct& p, const Rows& span, const Rows& after, Buffers& buffers, float* sums) {
  const Rows then = after.row < p.row_count ? after.run(after.begin, Type::run) : Rows{};
  Fetcher fetcher(after, sizeof(typename Type::Element));
  for (std::int64_t k = span.begin; k < span.begin + span.count; k += Type::run) {
    const bool last = k + Type::run >= span.begin + span.count;
    Splitter<Type> splitter(last ? then : span.run(k + Type::run, Type::run), buffers.next, fetcher);
    finish_stores();
    multiply_run<Type>(p, span.run(k, Type::run), buffers.now, sums, splitter);
    fetcher = splitter.fetcher();
    const std::int64_t end = k + Type::run < p.depth ? k + Type::run : p.depth;
    if (end % Type::sums_depth == 0 || end == p.depth) {
      finish_stores();
      add_sums<Type>(p, span.row, k < Type::sums_depth, sums);
    }
    buffers.turn();
  }
}

template <class Type>
void multiply_parts(const PanelProduct& p) {
  static const TileConfig config;
  _tile_loadconfig(&config);
  auto* sums = reinterpret_cast<float*>(p.scratch + buffers_bytes<Type>);
  Buffers buffers{p.scratch, p.scratch + buffer_bytes};
  const Order order = order_of<Type>(p);
  Rows span = order.first();
  Splitter<Type>(span.run(0, Type::run), buffers.now, {}).finish();
  while (span.row < p.row_count) {
    const Rows after = order.after(span);
    multiply_span<Type>(p, span, after, buffers, sums);
    span = after;
  }
  _tile_release();
  mend_sums<Type>(p);
}

template <class Type>
constexpr Kernel make_parts_kernel(const char* name) {
  return {.name = name,
          .dtype = Type::dtype,
          .tile_rows = tile_rows,
          .tile_tokens = tile_tokens,
          .scratch_bytes = scratch_bytes<Type>,
          .multiply = multiply_parts<Type>,
          .few_tokens = few_tokens,
          .packed_tokens = side,
          .packed_bytes = packed_bytes<Type>,
          .pack = pack_tokens<Type>};
}

constexpr Kernel kernels[] = {make_parts_kernel<Fp32Parts>("amx_bf16x3"), make_parts_kernel<Fp16Parts>("amx_bf16x2")};

}  // namespace

KernelList amx_parts_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
