#include <algorithm>
#include <array>

#include "cpu/implementations.hpp"
#include "cpu/threads.hpp"
#include "cpu/vector_math.hpp"

// act_and_mul as one loop over pieces of rows that stay in the first-level cache: widen, activate, multiply, round.
namespace gatefold::cpu {
namespace {

constexpr std::int64_t piece = 512;        // elements at a time: four buffers of 2 KiB, one of 4 KiB
constexpr std::int64_t smallest_run = 64;  // shorter runs of one half are read together with the other half's
constexpr std::int64_t span = 8 * piece;   // what a thread takes at a time
// In elements: starting the threads costs more than that saves. Without OpenMP there are none.
constexpr std::int64_t serial_below = 16384;

using Buffer = std::array<float, piece>;

// One half of a piece, columns [begin, begin + count) of a row.
struct Source {
  const std::byte* row = nullptr;
  LineMap map;
  DType dtype = DType::fp32;

  const std::byte* at(std::int64_t column) const { return row + map(column) * size_of(dtype); }
};

// Every second run of `block` elements.
void pick(const float* mixed, std::int64_t block, std::int64_t count, float* out) {
  if (block == 1) {
    for (std::int64_t j = 0; j < count; ++j) out[j] = mixed[2 * j];
    return;
  }
  for (std::int64_t j = 0; j < count; j += block) std::copy_n(mixed + 2 * j, block, out + j);
}

// How many columns from `begin` on can be loaded at a time. Blocks divide the row, so whole blocks always fit.
std::int64_t loadable(const LineMap& map, std::int64_t begin, std::int64_t end) {
  if (map.block >= smallest_run) return std::min({piece, end - begin, map.block - begin % map.block});
  return std::min(piece / map.block * map.block, end - begin);
}

void load_piece(const Source& source, std::int64_t begin, std::int64_t count, float* out) {
  const LineMap& map = source.map;
  if (map.block >= smallest_run || map.period == map.block) return widen(source.at(begin), source.dtype, count, out);
  std::array<float, 2 * piece> mixed;
  // The other half's elements after the last run are left out: they may lie behind the tensor's end.
  widen(source.at(begin), source.dtype, 2 * count - map.block, mixed.data());
  pick(mixed.data(), map.block, count, out);
}

class ActAndMulExecutor final : public Executor {
 public:
  explicit ActAndMulExecutor(const Problem& problem) : p_(problem) {}

  std::size_t workspace_size(std::int64_t /*max_tokens*/) const override { return 0; }

  Status run(const Operands& operands) const override {
    const std::int64_t F = p_.intermediate_size;
    const std::int64_t block = p_.layout.interleaved() ? p_.layout.block : 1;
    const std::int64_t width = (span + block - 1) / block * block;  // a whole number of blocks
    const std::int64_t spans = (F + width - 1) / width;
    const std::int64_t items = operands.tokens * spans;
    share_out(items, operands.tokens * F < serial_below ? 1 : thread_limit(), [&](std::int64_t item) {
      const std::int64_t begin = item % spans * width;
      run_span(operands, item / spans, begin, std::min(begin + width, F));
    });
    return {};
  }

 private:
  Source source(const Operands& operands, Half half, std::int64_t row) const {
    const HalfView view = half_view(p_, operands, half);
    return {view.base + row * view.ld * size_of(p_.types.x), view.map, p_.types.x};
  }

  void run_span(const Operands& operands, std::int64_t row, std::int64_t begin, std::int64_t end) const {
    const Source gate = source(operands, Half::gate, row);
    const Source up = source(operands, Half::up, row);
    std::byte* out = operands.out + row * p_.ld_out * size_of(p_.types.out);
    Buffer activated;
    Buffer factor;
    while (begin < end) {
      const std::int64_t count = loadable(gate.map, begin, end);
      load_piece(gate, begin, count, activated.data());
      load_piece(up, begin, count, factor.data());
      activate(p_.activation, activated.data(), count, activated.data());
      multiply(p_.activation, activated.data(), factor.data(), count, factor.data());
      narrow(factor.data(), p_.types.out, count, out + begin * size_of(p_.types.out));
      begin += count;
    }
  }

  Problem p_;
};

class ActAndMul final : public Implementation {
 public:
  std::string_view name() const override { return "vector"; }
  bool batch_invariant() const override { return true; }
  Verdict supports(const Problem& /*problem*/) const override { return {true, "one vectorised pass over the rows"}; }
  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<ActAndMulExecutor>(problem);
  }
};

const ActAndMul implementation;

}  // namespace

const Implementation* vector_act_and_mul() { return &implementation; }

}  // namespace gatefold::cpu
