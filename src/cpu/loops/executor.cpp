#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "core/arithmetic.hpp"
#include "cpu/cpu_info.hpp"
#include "cpu/loops/bias.hpp"
#include "cpu/loops/cut.hpp"
#include "cpu/loops/executor.hpp"
#include "cpu/loops/rows.hpp"
#include "cpu/loops/tokens.hpp"
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

// No product of sizes overflows with so many: short sums count as 64 terms, since packing fills them up.
constexpr std::int64_t most_elements = std::int64_t{1} << 58;

using PanelRows = std::array<const std::byte*, most_rows>;
using RowValues = std::array<float, most_rows>;

}  // namespace

std::int64_t token_limit(const Problem& p) {
  return most_elements / std::max<std::int64_t>({p.hidden_size, p.intermediate_size, 64});
}

namespace {

// Panel number i of so many where threads that claim panels in turn are to be far apart: each has a part of them.
std::int64_t panel_apart(std::int64_t i, std::int64_t panels, std::int64_t threads) {
  const std::int64_t part = i % threads;
  return part * (panels / threads) + std::min(part, panels % threads) + i / threads;
}

// A token's values, four columns of `bytes` at a time, each four so many tokens' further on.
template <std::int64_t bytes>
void copy_quads(const std::byte* values, std::int64_t tokens, std::int64_t columns, std::byte* out) {
  for (; columns >= tile_rows_of_weights; columns -= tile_rows_of_weights) {
    std::memcpy(out, values, bytes);
    out += bytes;
    values += tokens * bytes;
  }
  std::memcpy(out, values, static_cast<std::size_t>(columns * bytes / tile_rows_of_weights));
}

class LoopsExecutor final : public Executor {
 public:
  LoopsExecutor(const Problem& problem, const Kernel& kernel, const Caches& caches)
      : p_(problem),
        kernel_(kernel),
        threads_(thread_limit()),
        cut_({.columns = problem.intermediate_size,
              .row_bytes = problem.hidden_size * size_of(problem.types.weights),
              .halves = halves(),
              .multiplied_halves = multiplied_halves(),
              .threads = threads_,
              .caches = caches,
              .kernel = kernel}),
        tokens_(p_, kernel_, cut_),
        fetch_(fetch_for(caches)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    const std::int64_t most = std::min(max_tokens, token_limit(p_));
    const Packing packing = tokens_.packing_of(most);
    const std::int64_t unpacked = packing.x ? std::max<std::int64_t>(kernel_.outer.from - 1, 0) : most;  // or fewer
    return static_cast<std::size_t>(std::max(size_of_runs(unpacked, {}), size_of_runs(most, packing)));
  }

  std::string describe(std::int64_t tokens) const override {
    const std::int64_t some = std::min(tokens, token_limit(p_));
    const Packing packing = tokens_.packing_of(some);
    const Division division = cut_.divide(tokens_.chunk(some, packing), packing);
    return concat(kernel_.name, cut_.multiplies_outer(packing) ? ", outer products" : "", ", panels of ", division.rows,
                  " weight rows with up to ", division.tokens, " tokens, ", threads_, " threads");
  }

  Status run(const Operands& operands) const override {
    if (operands.tokens > token_limit(p_)) {
      return unsupported("tokens: ", operands.tokens, ", loops take at most ", token_limit(p_), " of these sizes");
    }
    const Whole whole{operands, tokens_.packing_of(operands.tokens)};
    const std::int64_t chunk = tokens_.chunk(operands.tokens, whole.packing);
    const Memory offsets = memory(operands.tokens);
    const bool serial = p_.hidden_size < serial_below && p_.intermediate_size < serial_below &&
                        operands.tokens < serial_below &&
                        p_.hidden_size * p_.intermediate_size < serial_below / operands.tokens;
    std::atomic<std::int64_t> unclaimed{0};
    run_as_team(serial ? 1 : threads_, [&](const Team& team) {
      std::byte* mine = operands.workspace + tokens_.size(chunk, whole.packing) + team.number * offsets.size;
      for (std::int64_t first = 0; first < operands.tokens; first += chunk) {
        const Chunk part = tokens_.chunk_of(whole, first, std::min(chunk, operands.tokens - first));
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

  // Columns [column, column + columns) of the output for tokens [token, token + tokens) of a chunk, and where its sums
  // go.
  struct Item {
    const Chunk& chunk;
    std::int64_t column;
    std::int64_t columns;
    std::int64_t token;
    std::int64_t tokens;
    std::int64_t rows;  // columns, rounded up to whole tiles
    float* sums;        // of gate, if there is one, then of up
    std::byte* scratch;

    std::int64_t half() const { return rows * tokens; }
    const Operands& operands() const { return chunk.operands; }
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

  // The workspace of any run of up to so many tokens that are packed so.
  std::int64_t size_of_runs(std::int64_t most, Packing packing) const {
    return tokens_.most_size(most, packing) + threads_ * memory(most).size;
  }

  // By all threads of the team together. Each claims the next item before it computes one, and asks for its rows; the
  // last ones only when it is free, so that none waits for an item that another thread holds, and asks for those of the
  // one that it will probably claim.
  void run_chunk(const Chunk& chunk, const Team& team, std::atomic<std::int64_t>& unclaimed, std::byte* mine,
                 std::int64_t scratch) const {
    tokens_.prepare(chunk, team);
    const std::int64_t chunk_tokens = chunk.operands.tokens;
    const Packing packing = chunk.whole.packing;
    const Division division = cut_.divide(chunk_tokens, packing);
    const auto item = [&](std::int64_t i) {
      // Neighbouring columns of h share lines where it is packed, and two threads would write them by turns.
      const std::int64_t in_turn = i % division.panels;
      const std::int64_t panel = packing.out ? panel_apart(in_turn, division.panels, team.size) : in_turn;
      const std::int64_t column = panel * division.rows;
      const std::int64_t token = i / division.panels * division.tokens;
      const std::int64_t columns = std::min(division.rows, p_.intermediate_size - column);
      const std::int64_t tokens = std::min(division.tokens, chunk_tokens - token);
      const std::int64_t rows = round_up(columns, cut_.row_unit({}));
      return Item{chunk, column, columns, token, tokens, rows, reinterpret_cast<float*>(mine), mine + scratch};
    };
    PanelRows rows[2];
    const std::int64_t items = division.items();
    const std::int64_t early_ones = items - std::int64_t{2} * team.size;
    std::int64_t now = unclaimed++;
    bool found = false;  // its rows
    for (int turn = 0; now < items; turn ^= 1) {
      if (!found) find_rows(item(now), rows[turn].data());
      const bool early = now < early_ones;
      const std::int64_t next = early ? unclaimed++ : now + team.size;
      if (next < items) find_rows(item(next), rows[turn ^ 1].data());
      run_item(item(now), rows[turn].data(), next < items ? rows[turn ^ 1].data() : nullptr);
      now = early ? next : unclaimed++;
      found = now == next;
    }
    team.wait();
    if (team.number == 0) unclaimed = 0;
    team.wait();
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
    const TokensOfX x = tokens_.x_from(item.chunk, item.token);
    kernel_.multiply({.rows = rows,
                      .row_count = multiplied_halves() * item.rows,
                      .next_rows = next_rows,
                      .fetch = fetch_,
                      .widens = cut_.widens(item.tokens),
                      .x = x.rows,
                      .x_stride = x.stride,
                      .packed = x.packed,
                      .group = x.group,
                      .tokens = item.tokens,
                      .depth = p_.hidden_size,
                      .sums = p_.op == Op::gate_up ? item.sums : up_of(item),
                      .scratch = item.scratch});
  }

  void finish_sums(const Item& item) const {
    const PanelShape panel{item.column, item.columns, item.tokens};
    const float* scale = p_.row_scale ? item.operands().row_scale + item.token : nullptr;
    const auto finish = [&](Half half, float* sums) {
      multiply_rows(scale, panel, sums);
      add_bias(bias_view(p_, item.operands(), half), p_.types.weights, panel, sums);
    };
    if (p_.op == Op::gate_up) finish(Half::gate, item.sums);
    finish(Half::up, up_of(item));
  }

  // A panel's rows are where its layout has them. The last panel may be shorter than the one that asks for its rows
  // ahead.
  void find_rows(const Item& item, const std::byte** rows) const {
    const PanelShape panel{item.column, item.columns, item.tokens};
    if (p_.op == Op::gate_up)
      find_panel_rows(half_view(p_, item.operands(), Half::gate), p_.types.weights, panel, item.rows, rows);
    const std::int64_t others = (multiplied_halves() - 1) * item.rows;
    find_panel_rows(half_view(p_, item.operands(), Half::up), p_.types.weights, panel, item.rows, rows + others);
    std::fill(rows + others + item.rows, rows + most_rows, rows[0]);
  }

  // The gate in memory, to where its sums would be.
  void load_gate(const Item& item) const {
    RowValues values{};
    for (std::int64_t t = 0; t < item.tokens; ++t) {
      const std::byte* stored = item.operands().gate + ((item.token + t) * p_.ld_gate + item.column) * element();
      widen(stored, p_.types.x, item.columns, values.data());
      for (std::int64_t r = 0; r < item.rows; r += tile_rows_of_weights) {
        std::memcpy(item.sums + r * item.tokens + t * tile_rows_of_weights, values.data() + r, 4 * sizeof(float));
      }
    }
  }

  // The values are rounded where the sums are; then four columns of a token lie side by side.
  void store(const Item& item) const {
    narrow(up_of(item), p_.types.out, item.half(), reinterpret_cast<std::byte*>(up_of(item)));
    if (item.chunk.whole.packing.out) return store_h(item);
    for (std::int64_t t = 0; t < item.tokens; ++t) {
      store_token(item, t, item.operands().out + ((item.token + t) * p_.ld_out + item.column) * element());
    }
  }

  void store_token(const Item& item, std::int64_t token, std::byte* out) const {
    const std::int64_t quad = tile_rows_of_weights * element();
    const std::byte* values = reinterpret_cast<const std::byte*>(up_of(item)) + token * quad;
    element() == 2 ? copy_quads<8>(values, item.tokens, item.columns, out)
                   : copy_quads<16>(values, item.tokens, item.columns, out);
  }

  void store_h(const Item& item) const {
    const std::int64_t quad = tile_rows_of_weights * element();
    const std::byte* values = reinterpret_cast<const std::byte*>(up_of(item));
    for (std::int64_t first = 0; first < item.tokens; first += outer_group) {
      const std::int64_t count = std::min(outer_group, item.tokens - first);
      tokens_.pack_h(item.chunk,
                     {values + first * quad, item.tokens * quad, item.token + first, count, item.column, item.columns});
    }
  }

  Problem p_;
  const Kernel& kernel_;
  int threads_;
  Cut cut_;
  Tokens tokens_;
  Fetch fetch_;
};

}  // namespace

std::unique_ptr<Executor> make_executor(const Problem& problem, const Kernel& kernel, const Caches& caches) {
  return std::make_unique<LoopsExecutor>(problem, kernel, caches);
}

}  // namespace gatefold::cpu
