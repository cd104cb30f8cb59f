#include "cpu/truth.hpp"

#include <algorithm>
#include <cmath>

#include "core/float16.hpp"
#include "cpu/activation.hpp"

namespace gatefold::cpu {
namespace {

// rows first, first + 1, ... of a plain matrix
RowSet rows_of(const std::byte* base, DType dtype, std::int64_t ld, std::int64_t first, int count) {
  RowSet set;
  set.count = count;
  set.element = element_of(dtype);
  for (int i = 0; i < count; ++i) set.rows[i] = base + (first + i) * ld * size_of(dtype);
  return set;
}

// rows first, first + 1, ... of one half of the weights
RowSet rows_of(const HalfView& half, DType dtype, std::int64_t first, int count) {
  RowSet set;
  set.count = count;
  set.element = element_of(dtype);
  for (int i = 0; i < count; ++i) set.rows[i] = half.base + half.map(first + i) * half.ld * size_of(dtype);
  return set;
}

// An operand of act_and_mul: the half's lines are columns.
double load_column(const HalfView& half, DType dtype, std::int64_t row, std::int64_t column) {
  return load(half.base, dtype, row * half.ld + half.map(column));
}

// Of each column's sum, 0 where there is none.
std::array<double, tile_rows> biases_of(const BiasView& bias, DType dtype, const TileRange& range) {
  std::array<double, tile_rows> values{};
  if (bias.base == nullptr) return values;
  for (int j = 0; j < range.columns; ++j) values[j] = load(bias.base, dtype, bias.map(range.column + j));
  return values;
}

void scale_rows(Products& products, const float* scale, const TileRange& range) {
  for (int i = 0; i < range.rows; ++i) {
    for (int j = 0; j < range.columns; ++j) {
      products.sum[i][j] *= static_cast<double>(scale[i]);
      products.magnitude[i][j] *= static_cast<double>(scale[i]);
    }
  }
}

void finish(const Activation& act, Tile::Entry& entry, double gate, double up) {
  entry.gate = gate;
  entry.up = up;
  entry.activated = activate(act, gate);
  entry.factor = linear_factor(act, up);
  entry.value = entry.activated * entry.factor;
}

}  // namespace

Tile truth(const Problem& p, const Operands& o, const TileRange& range) {
  const bool has_gate_product = p.op == Op::gate_up || p.op == Op::mlp;
  const bool has_up_product = p.op != Op::act_and_mul && p.hidden_size > 0;  // an empty sum has no rows to point at
  const bool single_weight = p.op == Op::gemm || p.op == Op::gemm_gated;

  const HalfView gate_half = half_view(p, o, Half::gate);
  const HalfView up_half = half_view(p, o, Half::up);

  Products gate_products;
  Products up_products;
  if (has_up_product) {
    const RowSet x = rows_of(o.x, p.types.x, p.ld_x, range.row, range.rows);
    const RowSet w_up = single_weight ? rows_of(o.up, p.types.weights, p.ld_up, range.column, range.columns)
                                      : rows_of(up_half, p.types.weights, range.column, range.columns);
    up_products = multiply(x, w_up, p.hidden_size);
    if (has_gate_product) {
      gate_products = multiply(x, rows_of(gate_half, p.types.weights, range.column, range.columns), p.hidden_size);
    }
  }

  if (o.row_scale != nullptr) {
    scale_rows(gate_products, o.row_scale + range.row, range);
    scale_rows(up_products, o.row_scale + range.row, range);
  }
  const auto gate_bias = biases_of(bias_view(p, o, Half::gate), p.types.weights, range);
  const auto up_bias = biases_of(bias_view(p, o, Half::up), p.types.weights, range);
  Tile tile;
  for (int i = 0; i < range.rows; ++i) {
    for (int j = 0; j < range.columns; ++j) {
      const std::int64_t row = range.row + i;
      const std::int64_t column = range.column + j;
      Tile::Entry& entry = tile.entries[i][j];
      entry.gate_magnitude = gate_products.magnitude[i][j] + std::abs(gate_bias[j]);
      entry.up_magnitude = up_products.magnitude[i][j] + std::abs(up_bias[j]);
      const double gate_sum = gate_products.sum[i][j] + gate_bias[j];
      const double up_sum = up_products.sum[i][j] + up_bias[j];
      switch (p.op) {
        case Op::act_and_mul:
          finish(p.activation, entry, load_column(gate_half, p.types.x, row, column),
                 load_column(up_half, p.types.x, row, column));
          break;
        case Op::gemm:
          entry.activated = 1.0;
          entry.up = entry.factor = entry.value = up_sum;
          break;
        case Op::gemm_gated:
          finish(p.activation, entry, load(o.gate, p.types.x, row * p.ld_gate + column), up_sum);
          break;
        case Op::gate_up:
        case Op::mlp: finish(p.activation, entry, gate_sum, up_sum); break;
      }
    }
  }
  return tile;
}

std::int64_t tile_count(std::int64_t tokens, std::int64_t columns) {
  return (tokens + tile_rows - 1) / tile_rows * ((columns + tile_rows - 1) / tile_rows);
}

TileRange tile_range(std::int64_t tokens, std::int64_t columns, std::int64_t index) {
  const std::int64_t down = (tokens + tile_rows - 1) / tile_rows;  // neighbours share weight rows
  const std::int64_t row = index % down * tile_rows;
  const std::int64_t column = index / down * tile_rows;
  return {row, column, static_cast<int>(std::min<std::int64_t>(tile_rows, tokens - row)),
          static_cast<int>(std::min<std::int64_t>(tile_rows, columns - column))};
}

}  // namespace gatefold::cpu
