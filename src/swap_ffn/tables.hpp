#pragma once

#include <cstdint>
#include <vector>

#include "swap_ffn/config.hpp"

// What depends on the weights alone, in double precision.
namespace gatefold::swap_ffn {

// Element by element as it is stored.
std::vector<double> to_doubles(const std::byte* data, DType dtype, std::int64_t count);

struct CoreTables {
  std::vector<double> scale;  // [C, D]
  std::vector<double> shift;  // [C, D]
  std::vector<double> alpha;  // [C, K]
};
CoreTables core_tables(const Config& config, const Weights& weights);

// matrix [rows, columns] with each column scaled, rounded once to dtype: gate_w and up_w with ffn_norm folded in.
void fold_columns(const std::byte* matrix, const std::byte* scale, DType dtype, std::int64_t rows, std::int64_t columns,
                  std::byte* out);

}  // namespace gatefold::swap_ffn
