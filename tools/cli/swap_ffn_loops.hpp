#pragma once

#include <cstdint>
#include <vector>

#include "cli/swap_ffn_data.hpp"

// The loops of the unfused step: each reads whole tensors and writes one, rounded to the element type.
namespace gatefold::cli {

// out[row] = norm * row / rms(row)
void rms_norm(gatefold_dtype dtype, const Bytes& in, const Bytes& norm, double eps, std::int64_t rows, std::int64_t D,
              Bytes& out);

// in [rows, width] . w [width, columns] + b, a product too narrow for gemm
void narrow_product(gatefold_dtype dtype, const Bytes& in, const Bytes& w, const Bytes& b, std::int64_t rows,
                    std::int64_t width, std::int64_t columns, std::vector<float>& out);

// core_embed . w^T + b + offset, [C, columns], in fp32: they depend on the weights alone, so no step computes them.
std::vector<float> core_table(const SwapFfnData& data, const char* w, const char* b, std::int64_t columns,
                              float offset);
void softmax_rows(std::vector<float>& table, std::int64_t columns);

// s [B, C, D] from x [B, D] and the tables [C, D]
void start_rows(const SwapFfnData& data, const std::vector<float>& scale, const std::vector<float>& shift, Bytes& s);

// pooled [B, K, D] = sum over cores of alpha [C, K] s
void pool_cores(const SwapFfnData& data, const std::vector<float>& alpha, const Bytes& s, Bytes& pooled);

// q [B, Rc] = sum over heads of basis [K, Rc, D] . pooled
void collapse_heads(const SwapFfnData& data, const Bytes& pooled, Bytes& q);

void silu_in_place(gatefold_dtype dtype, std::int64_t count, Bytes& values);

// |a - b| / |b|
double relative_l2(gatefold_dtype dtype, const Bytes& a, const Bytes& b);

}  // namespace gatefold::cli
