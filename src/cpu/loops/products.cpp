#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/arithmetic.hpp"
#include "cpu/implementations.hpp"
#include "cpu/loops/bias.hpp"
#include "cpu/loops/kernel.hpp"
#include "cpu/threads.hpp"
#include "cpu/vector_math.hpp"

// gemm, gemm_gated and gate_up straight from the stored rows.
//
//   for each block of tokens and panel of weight rows, shared out among threads
//     gate = x . w_gate^T          sums in the cache, [rows / 4][tokens][4]
//     up   = x . w_up^T            and each its bias
//     act(gate) * up, then rounded once to the output's columns
//
// A panel's rows are found by the layout's map, so that nothing is packed, and one layout is as good as another. How
// the work is divided shows in no result.
namespace gatefold::cpu {
namespace {

constexpr std::int64_t most_tokens = 512;
constexpr std::int64_t items_a_thread = 8;  // at least, so that no thread waits long for the last one
constexpr std::int64_t sums_granule = 16;   // of elements that the activations work on at a time
constexpr std::int64_t alignment = 64;

// Below so many products, starting the threads costs more than they save.
constexpr std::int64_t serial_below = std::int64_t{1} << 16;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

// Sizes that no machine holds, and with which no product of them below overflows: short sums count as 64 terms, since
// packing fills them up.
constexpr std::int64_t most_columns = std::int64_t{1} << 44;  // of D and of F
constexpr std::int64_t most_elements = std::int64_t{1} << 58;

std::int64_t token_limit(const Problem& p) {
  return most_elements / std::max<std::int64_t>({p.hidden_size, p.intermediate_size, 64});
}

using PanelRows = std::array<const std::byte*, most_rows>;
using RowValues = std::array<float, most_rows>;

// How a run's output is cut: items of `rows` columns by `tokens` tokens.
struct Division {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  std::int64_t panels = 0;
  std::int64_t blocks = 0;

  std::int64_t items() const { return panels * blocks; }
};

class LoopsExecutor final : public Executor {
 public:
  LoopsExecutor(const Problem& problem, const Kernel& kernel)
      : p_(problem), kernel_(kernel), threads_(thread_limit()) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    const std::int64_t most = std::min(max_tokens, token_limit(p_));
    return static_cast<std::size_t>(packed_size(most) + threads_ * memory(most).size);
  }

  std::string describe(std::int64_t tokens) const override {
    const Division division = divide(std::min(tokens, token_limit(p_)));
    return concat(kernel_.name, ", panels of ", division.rows, " weight rows with up to ", division.tokens, " tokens, ",
                  threads_, " threads");
  }

  Status run(const Operands& operands) const override {
    if (operands.tokens > token_limit(p_)) {
      return unsupported("tokens: ", operands.tokens, ", loops take at most ", token_limit(p_), " of these sizes");
    }
    const Division division = divide(operands.tokens);
    const Memory offsets = memory(operands.tokens);
    [[maybe_unused]] const bool serial = p_.hidden_size < serial_below && p_.intermediate_size < serial_below &&
                                         operands.tokens < serial_below &&
                                         p_.hidden_size * p_.intermediate_size < serial_below / operands.tokens;
#pragma omp parallel num_threads(serial ? 1 : threads_)
    {
      std::byte* mine = operands.workspace + packed_size(operands.tokens) + this_thread() * offsets.size;
      if (packs()) {
#pragma omp for schedule(static)
        for (std::int64_t token = 0; token < operands.tokens; token += kernel_.packed_tokens) pack(operands, token);
      }
#pragma omp for schedule(dynamic)
      for (std::int64_t i = 0; i < division.items(); ++i) {
        const std::int64_t column = i % division.panels * division.rows;
        const std::int64_t token = i / division.panels * division.tokens;
        const std::int64_t columns = std::min(division.rows, p_.intermediate_size - column);
        run_item({operands, column, columns, token, std::min(division.tokens, operands.tokens - token),
                  reinterpret_cast<float*>(mine + offsets.gate), reinterpret_cast<float*>(mine + offsets.up),
                  mine + offsets.scratch, round_up(columns, kernel_.tile_rows)});
      }
    }
    return {};
  }

 private:
  // A thread's part of the workspace, in bytes.
  struct Memory {
    std::int64_t gate = 0;
    std::int64_t up = 0;
    std::int64_t scratch = 0;
    std::int64_t size = 0;
  };

  // Columns [column, column + columns) of the output for tokens [token, token + tokens), and where its sums go.
  struct Item {
    const Operands& operands;
    std::int64_t column;
    std::int64_t columns;
    std::int64_t token;
    std::int64_t tokens;
    float* gate;
    float* up;
    std::byte* scratch;

    std::int64_t rows;  // columns, rounded up to whole tiles

    std::int64_t sums() const { return round_up(rows * tokens, sums_granule); }
  };

  std::int64_t element() const { return size_of(p_.dtype); }

  Division divide(std::int64_t tokens) const {
    const std::int64_t wanted = threads_ * items_a_thread;
    Division d;
    d.tokens = std::min(tokens, most_tokens);
    d.rows =
        std::min(most_rows, most_sums / std::max<std::int64_t>(d.tokens, 1) / kernel_.tile_rows * kernel_.tile_rows);
    const auto count = [&] {
      d.panels = ceil_div(p_.intermediate_size, d.rows);
      d.blocks = ceil_div(tokens, std::max<std::int64_t>(d.tokens, 1));
      return d.items();
    };
    while (count() < wanted) {
      if (d.tokens >= 16 * kernel_.tile_tokens) {
        d.tokens = round_up(d.tokens / 2, kernel_.tile_tokens);
      } else if (d.rows > std::max<std::int64_t>(16, kernel_.tile_rows)) {
        d.rows = round_up(d.rows / 2, kernel_.tile_rows);
      } else {
        break;
      }
    }
    return d;
  }

  // Enough for every way in which up to so many tokens may be divided.
  Memory memory(std::int64_t tokens) const {
    const std::int64_t sums = round_up(std::min(most_rows * tokens, most_sums), sums_granule) * sizeof(float);
    Memory m;
    m.up = p_.op == Op::gemm ? 0 : round_up(sums, alignment);
    m.scratch = m.up + round_up(sums, alignment);
    m.size = m.scratch + round_up(kernel_.scratch_bytes, alignment);
    return m;
  }

  bool packs() const { return kernel_.packed_tokens > 0; }

  std::int64_t packed_size(std::int64_t tokens) const {
    return packs() ? ceil_div(tokens, kernel_.packed_tokens) * kernel_.packed_bytes(p_.hidden_size) : 0;
  }

  void pack(const Operands& operands, std::int64_t token) const {
    kernel_.pack({.x = operands.x + token * p_.ld_x * element(),
                  .x_stride = p_.ld_x * element(),
                  .tokens = std::min(kernel_.packed_tokens, operands.tokens - token),
                  .depth = p_.hidden_size,
                  .out = operands.workspace + packed_size(token)});
  }

  const std::byte* x_of(const Item& item) const {
    return packs() ? item.operands.workspace + packed_size(item.token)
                   : item.operands.x + item.token * p_.ld_x * element();
  }

  void run_item(const Item& item) const {
    if (p_.op == Op::gate_up) multiply_half(item, Half::gate, item.gate);
    if (p_.op == Op::gemm_gated) load_gate(item);
    multiply_half(item, Half::up, item.up);
    finish_sums(item);
    if (p_.op != Op::gemm) {
      activate(p_.activation, item.gate, item.sums(), item.gate);
      multiply(p_.activation, item.gate, item.up, item.sums(), item.up);
    }
    store(item);
  }

  void multiply_half(const Item& item, Half half, float* sums) const {
    PanelRows rows;
    find_rows(item, half, rows);
    kernel_.multiply({.rows = rows.data(),
                      .row_count = item.rows,
                      .x = x_of(item),
                      .x_stride = p_.ld_x * element(),
                      .tokens = item.tokens,
                      .depth = p_.hidden_size,
                      .sums = sums,
                      .scratch = item.scratch});
  }

  void finish_sums(const Item& item) const {
    const PanelShape panel{item.column, item.columns, item.tokens};
    const float* scale = p_.row_scale ? item.operands.row_scale + item.token : nullptr;
    const auto finish = [&](Half half, float* sums) {
      multiply_rows(scale, panel, sums);
      add_bias(bias_view(p_, item.operands, half), p_.dtype, panel, sums);
    };
    if (p_.op == Op::gate_up) finish(Half::gate, item.gate);
    finish(Half::up, item.up);
  }

  // Past the last row, the last again: its sums are left where they are.
  void find_rows(const Item& item, Half half, PanelRows& rows) const {
    const HalfView view = half_view(p_, item.operands, half);
    std::int64_t within = item.column % view.map.block;
    std::int64_t line = view.map(item.column);
    for (std::int64_t j = 0; j < item.columns; ++j) {
      rows[j] = view.base + line * view.ld * element();
      ++line;
      if (++within == view.map.block) {
        within = 0;
        line += view.map.period - view.map.block;
      }
    }
    for (std::int64_t j = item.columns; j < item.rows; ++j) rows[j] = rows[item.columns - 1];
  }

  // The gate in memory, to where its sums would be.
  void load_gate(const Item& item) const {
    RowValues values{};
    for (std::int64_t t = 0; t < item.tokens; ++t) {
      const std::byte* stored = item.operands.gate + ((item.token + t) * p_.ld_gate + item.column) * element();
      widen(stored, p_.dtype, item.columns, values.data());
      for (std::int64_t r = 0; r < item.rows; r += tile_rows_of_weights) {
        std::memcpy(item.gate + r * item.tokens + t * tile_rows_of_weights, values.data() + r, 4 * sizeof(float));
      }
    }
  }

  void store(const Item& item) const {
    RowValues values;
    for (std::int64_t t = 0; t < item.tokens; ++t) {
      for (std::int64_t r = 0; r < item.rows; r += tile_rows_of_weights) {
        std::memcpy(values.data() + r, item.up + r * item.tokens + t * tile_rows_of_weights, 4 * sizeof(float));
      }
      narrow(values.data(), p_.dtype, item.columns,
             item.operands.out + ((item.token + t) * p_.ld_out + item.column) * element());
    }
  }

  Problem p_;
  const Kernel& kernel_;
  int threads_;
};

class Loops final : public Implementation {
 public:
  std::string_view name() const override { return "loops"; }

  Verdict supports(const Problem& problem) const override {
    if (problem.hidden_size == 0) return {false, "needs D > 0"};  // rows of nothing may be null
    if (std::max(problem.hidden_size, problem.intermediate_size) > most_columns) return {false, "D or F exceeds 2^44"};
    Verdict verdict{true, problem.op == Op::gemm ? "weights straight from memory, panel by panel"
                                                 : "weights straight from memory; activation and product while a "
                                                   "panel's sums are in the cache"};
    verdict.max_tokens = token_limit(problem);
    return verdict;
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<LoopsExecutor>(problem, *kernels_for(problem.dtype).front());
  }

  std::vector<std::string> kernels(const Problem& problem) const override {
    std::vector<std::string> names;
    for (const Kernel* kernel : kernels_for(problem.dtype)) names.emplace_back(kernel->name);
    return names;
  }

  std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view wanted) const override {
    const auto& all = kernels_for(problem.dtype);
    const auto found =
        std::ranges::find(all, wanted, [](const Kernel* kernel) { return std::string_view(kernel->name); });
    return std::make_unique<LoopsExecutor>(problem, **found);
  }
};

const Loops implementation;

}  // namespace

const Implementation* loops() { return &implementation; }

}  // namespace gatefold::cpu
