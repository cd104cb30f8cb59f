#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "core/arithmetic.hpp"
#include "core/row_stride.hpp"
#include "cpu/cpu_info.hpp"
#include "cpu/loops/bias.hpp"
#include "cpu/loops/cut.hpp"
#include "cpu/loops/executor.hpp"
#include "cpu/loops/rows.hpp"
#include "cpu/threads.hpp"
#include "cpu/vector_math.hpp"

// gemm, gemm_gated and gate_up straight from the stored rows.
//
//   for each block of tokens and panel of weight rows, shared out among threads
//     gate, up = x . w_gate^T, x . w_up^T    as one panel; sums in the cache, [rows / 4][tokens][4]; each its bias
//     act(gate) * up, then rounded once to the output's columns
//
// A panel's rows are found by the layout's map, so that weights are never put into another order ahead of time, and one
// layout is as good as another. How the work is divided shows in no result.
namespace gatefold::cpu {
namespace {

constexpr std::int64_t alignment = 64;

// Below so many products, starting the threads costs more than they save.
constexpr std::int64_t serial_below = std::int64_t{1} << 16;

// Where the first-level cache holds no more, what is fetched goes to the second-level one.
constexpr std::int64_t small_first_level = 32768;

// No product of sizes overflows with so many: short sums count as 64 terms, since packing fills them up.
constexpr std::int64_t most_elements = std::int64_t{1} << 58;

using PanelRows = std::array<const std::byte*, most_rows>;
using RowValues = std::array<float, most_rows>;

}  // namespace

std::int64_t token_limit(const Problem& p) {
  return most_elements / std::max<std::int64_t>({p.hidden_size, p.intermediate_size, 64});
}

namespace {

class LoopsExecutor final : public Executor {
 public:
  LoopsExecutor(const Problem& problem, const Kernel& kernel)
      : p_(problem),
        kernel_(kernel),
        threads_(thread_limit()),
        cut_({.columns = problem.intermediate_size,
              .row_bytes = problem.hidden_size * size_of(problem.types.weights),
              .halves = halves(),
              .multiplied_halves = multiplied_halves(),
              .threads = threads_,
              .second_level = second_level_cache_bytes(),
              .kernel = kernel}),
        spares_first_level_(first_level_cache_bytes() > 0 && first_level_cache_bytes() <= small_first_level) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    const std::int64_t most = std::min(max_tokens, token_limit(p_));
    return static_cast<std::size_t>(prepared_size(std::min(most, most_chunk)) + threads_ * memory(most).size);
  }

  std::string describe(std::int64_t tokens) const override {
    const Division division = cut_.divide(std::min(tokens, most_chunk));
    return concat(kernel_.name, ", panels of ", division.rows, " weight rows with up to ", division.tokens, " tokens, ",
                  threads_, " threads");
  }

  Status run(const Operands& operands) const override {
    if (operands.tokens > token_limit(p_)) {
      return unsupported("tokens: ", operands.tokens, ", loops take at most ", token_limit(p_), " of these sizes");
    }
    const std::int64_t chunk = std::min(operands.tokens, most_chunk);
    const Memory offsets = memory(chunk);
    const bool serial = p_.hidden_size < serial_below && p_.intermediate_size < serial_below &&
                        operands.tokens < serial_below &&
                        p_.hidden_size * p_.intermediate_size < serial_below / operands.tokens;
    std::atomic<std::int64_t> unclaimed{0};
    run_as_team(serial ? 1 : threads_, [&](const Team& team) {
      std::byte* mine = operands.workspace + prepared_size(chunk) + team.number * offsets.size;
      for (std::int64_t first = 0; first < operands.tokens; first += chunk) {
        const Operands part = part_of(operands, first, std::min(chunk, operands.tokens - first));
        run_chunk(part, team, unclaimed, mine, offsets.scratch);
      }
    });
    return {};
  }

 private:
  // A thread's part of the workspace, in bytes: the sums of an item, then the kernel's scratch.
  struct Memory {
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
    std::int64_t rows;  // columns, rounded up to whole tiles
    float* sums;        // of gate, if there is one, then of up
    std::byte* scratch;

    std::int64_t half() const { return rows * tokens; }
  };

  std::int64_t element() const { return size_of(p_.types.x); }

  std::int64_t halves() const { return p_.op == Op::gemm ? 1 : most_halves; }
  std::int64_t multiplied_halves() const { return p_.op == Op::gate_up ? most_halves : 1; }

  Memory memory(std::int64_t tokens) const {
    Memory m;
    m.scratch = round_up(cut_.most_sums_of(tokens) * static_cast<std::int64_t>(sizeof(float)), alignment);
    m.size = m.scratch + round_up(cut_.most_scratch_of(tokens), alignment);
    return m;
  }

  // Of packed tokens; 0 where x is read as it is.
  std::int64_t groups(std::int64_t tokens) const {
    return kernel_.packed_tokens == 0 ? 0 : ceil_div(tokens, kernel_.packed_tokens);
  }

  std::int64_t packed_size(std::int64_t tokens) const {
    const std::int64_t count = groups(tokens);
    return count == 0 ? 0 : count * kernel_.packed_bytes(p_.hidden_size);
  }

  // Whether x is copied to rows further apart: rows whose lines compete for one set of the first-level cache cost up to
  // a fifth of the products' speed.
  bool copies(std::int64_t tokens) const {
    // Of the remainder: the leading dimension of a single row may be one whose bytes overflow.
    const bool conflict = rows_conflict(p_.ld_x % conflict_bytes * element());
    return kernel_.x_in_place && tokens > 1 && conflict;
  }

  std::int64_t copied_stride() const { return spread_stride(round_up(p_.hidden_size * element(), cache_line_bytes)); }

  // Of x, packed or copied.
  std::int64_t prepared_size(std::int64_t tokens) const {
    return copies(tokens) ? tokens * copied_stride() : packed_size(tokens);
  }

  // Where x is read: first row, and bytes from one to the next.
  struct TokenRows {
    const std::byte* first;
    std::int64_t stride;
  };
  TokenRows rows_of_x(const Operands& operands) const {
    if (copies(operands.tokens)) return {operands.workspace, copied_stride()};
    return {operands.x, p_.ld_x * element()};
  }

  PackedX packed(const Operands& operands) const { return {operands.workspace, groups(operands.tokens)}; }

  Operands part_of(const Operands& operands, std::int64_t first, std::int64_t count) const {
    Operands part = operands;
    part.tokens = count;
    part.x += first * p_.ld_x * element();
    part.out += first * p_.ld_out * element();
    if (p_.op == Op::gemm_gated) part.gate += first * p_.ld_gate * element();
    if (p_.row_scale) part.row_scale += first;
    return part;
  }

  // By all threads of the team together. Each asks for the rows of the item that it will probably claim next.
  void run_chunk(const Operands& operands, const Team& team, std::atomic<std::int64_t>& unclaimed, std::byte* mine,
                 std::int64_t scratch) const {
    prepare_x(operands, team);
    const Division division = cut_.divide(operands.tokens);
    const auto item = [&](std::int64_t i) {
      const std::int64_t column = i % division.panels * division.rows;
      const std::int64_t token = i / division.panels * division.tokens;
      const std::int64_t columns = std::min(division.rows, p_.intermediate_size - column);
      const std::int64_t tokens = std::min(division.tokens, operands.tokens - token);
      const std::int64_t rows = round_up(columns, cut_.row_unit());
      return Item{operands, column, columns, token, tokens, rows, reinterpret_cast<float*>(mine), mine + scratch};
    };
    PanelRows rows[2];
    const std::int64_t items = division.items();
    std::int64_t guessed = items;
    for (int turn = 0;; turn ^= 1) {
      const std::int64_t claimed = unclaimed++;
      if (claimed >= items) break;
      if (claimed != guessed) find_rows(item(claimed), rows[turn].data());
      guessed = claimed + team.size;
      if (guessed < items) find_rows(item(guessed), rows[turn ^ 1].data());
      run_item(item(claimed), rows[turn].data(), guessed < items ? rows[turn ^ 1].data() : nullptr);
    }
    team.wait();
    if (team.number == 0) unclaimed = 0;
    team.wait();
  }

  void prepare_x(const Operands& operands, const Team& team) const {
    if (const std::int64_t count = groups(operands.tokens); count > 0) {
      team.take_part(count, [&](std::int64_t group) { pack(operands, group); });
    } else if (copies(operands.tokens)) {
      team.take_part(operands.tokens, [&](std::int64_t token) {
        std::memcpy(operands.workspace + token * copied_stride(), operands.x + token * p_.ld_x * element(),
                    static_cast<std::size_t>(p_.hidden_size * element()));
      });
    } else {
      return;
    }
    team.wait();
  }

  void pack(const Operands& operands, std::int64_t group) const {
    const std::int64_t token = group * kernel_.packed_tokens;
    kernel_.pack({.x = operands.x + token * p_.ld_x * element(),
                  .x_stride = p_.ld_x * element(),
                  .tokens = std::min(kernel_.packed_tokens, operands.tokens - token),
                  .depth = p_.hidden_size,
                  .packed = packed(operands),
                  .group = group});
  }

  void run_item(const Item& item, const std::byte* const* rows, const std::byte* const* next_rows) const {
    if (p_.op == Op::gemm_gated) load_gate(item);
    multiply_rows_of(item, rows, next_rows);
    finish_sums(item);
    if (p_.op != Op::gemm) {
      activate(p_.activation, item.sums, item.half(), item.sums);
      multiply(p_.activation, item.sums, up_of(item), item.half(), up_of(item));
    }
    store(item);
  }

  float* up_of(const Item& item) const { return item.sums + (halves() - 1) * item.half(); }

  void multiply_rows_of(const Item& item, const std::byte* const* rows, const std::byte* const* next_rows) const {
    const TokenRows x = rows_of_x(item.operands);
    kernel_.multiply({.rows = rows,
                      .row_count = multiplied_halves() * item.rows,
                      .next_rows = next_rows,
                      .spares_first_level = spares_first_level_,
                      .widens = cut_.widens(item.tokens),
                      .x = x.first + item.token * x.stride,
                      .x_stride = x.stride,
                      .packed = packed(item.operands),
                      .group = item.token / std::max<std::int64_t>(kernel_.packed_tokens, 1),
                      .tokens = item.tokens,
                      .depth = p_.hidden_size,
                      .sums = p_.op == Op::gate_up ? item.sums : up_of(item),
                      .scratch = item.scratch});
  }

  void finish_sums(const Item& item) const {
    const PanelShape panel{item.column, item.columns, item.tokens};
    const float* scale = p_.row_scale ? item.operands.row_scale + item.token : nullptr;
    const auto finish = [&](Half half, float* sums) {
      multiply_rows(scale, panel, sums);
      add_bias(bias_view(p_, item.operands, half), p_.types.weights, panel, sums);
    };
    if (p_.op == Op::gate_up) finish(Half::gate, item.sums);
    finish(Half::up, up_of(item));
  }

  // A panel's rows are where its layout has them. The last panel may be shorter than the one that asks for its rows
  // ahead.
  void find_rows(const Item& item, const std::byte** rows) const {
    const PanelShape panel{item.column, item.columns, item.tokens};
    if (p_.op == Op::gate_up)
      find_panel_rows(half_view(p_, item.operands, Half::gate), p_.types.weights, panel, item.rows, rows);
    const std::int64_t others = (multiplied_halves() - 1) * item.rows;
    find_panel_rows(half_view(p_, item.operands, Half::up), p_.types.weights, panel, item.rows, rows + others);
    std::fill(rows + others + item.rows, rows + most_rows, rows[0]);
  }

  // The gate in memory, to where its sums would be.
  void load_gate(const Item& item) const {
    RowValues values{};
    for (std::int64_t t = 0; t < item.tokens; ++t) {
      const std::byte* stored = item.operands.gate + ((item.token + t) * p_.ld_gate + item.column) * element();
      widen(stored, p_.types.x, item.columns, values.data());
      for (std::int64_t r = 0; r < item.rows; r += tile_rows_of_weights) {
        std::memcpy(item.sums + r * item.tokens + t * tile_rows_of_weights, values.data() + r, 4 * sizeof(float));
      }
    }
  }

  void store(const Item& item) const {
    RowValues values;
    for (std::int64_t t = 0; t < item.tokens; ++t) {
      for (std::int64_t r = 0; r < item.rows; r += tile_rows_of_weights) {
        std::memcpy(values.data() + r, up_of(item) + r * item.tokens + t * tile_rows_of_weights, 4 * sizeof(float));
      }
      narrow(values.data(), p_.types.out, item.columns,
             item.operands.out + ((item.token + t) * p_.ld_out + item.column) * element());
    }
  }

  Problem p_;
  const Kernel& kernel_;
  int threads_;
  Cut cut_;
  bool spares_first_level_;
};

}  // namespace

std::unique_ptr<Executor> make_executor(const Problem& problem, const Kernel& kernel) {
  return std::make_unique<LoopsExecutor>(problem, kernel);
}

}  // namespace gatefold::cpu
