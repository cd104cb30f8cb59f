#pragma once

#include <array>

#include "swap_ffn/config.hpp"
#include "swap_ffn/tables.hpp"

// The step in double precision.
namespace gatefold::swap_ffn {

struct ReferenceOperands {
  std::int64_t batch = 0;
  const std::byte* x = nullptr;
  double* ram = nullptr;
  std::uint8_t* stream_map = nullptr;
  double* delta = nullptr;
  double* cores = nullptr;            // may be null
  std::uint8_t* decisions = nullptr;  // may be null
};
void reference(const Config& config, const Weights& weights, const ReferenceOperands& operands);

// What reference and check share. With each value the sum of the magnitudes that it was added up from.
struct Summed {
  double value = 0.0;
  double magnitude = 0.0;
};
struct RouterValues {
  Summed swap;
  std::array<Summed, banks> logits;
};

// From the router's values z [R] and their magnitudes.
class RouterHead {
 public:
  RouterHead(const Config& config, const Weights& weights);
  RouterValues operator()(const double* z, const double* magnitude) const;

 private:
  std::vector<double> swap_w_, swap_b_, bank_w_, bank_b_;
};

struct Collapsed {
  std::vector<double> pooled;            // [B, K, D]
  std::vector<double> q, delta;          // [B, Rc], [B, D]
  std::vector<double> pooled_magnitude;  // sum of |alpha||s|
  std::vector<double> q_magnitude;       // sum of |basis| pooled_magnitude
  std::vector<double> delta_magnitude;   // sum of |silu(q)||decoder|
};
Collapsed collapse(const Config& config, const Weights& weights, const std::vector<double>& alpha, const double* s,
                   std::int64_t batch);

}  // namespace gatefold::swap_ffn
