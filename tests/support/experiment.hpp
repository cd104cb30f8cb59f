#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/layouts.hpp"
#include "support/public_types.hpp"
#include "support/random.hpp"
#include "support/tensor.hpp"

namespace gatefold::test {

enum class Values {
  zero_mean,        // normal
  all_positive,     // uniform: the sums grow with D, and so do their errors
  small_integers,   // every sum and product is exact in fp32: only the last rounding is left
  sparse_integers,  // so few that h too is exact in every type, for mlp
};

// Elements that each row is longer than it need be.
struct Padding {
  std::int64_t x = 0;
  std::int64_t gate = 0;
  std::int64_t up = 0;
  std::int64_t down = 0;
  std::int64_t out = 0;
};

struct Spec {
  gatefold_op op{};
  gatefold_dtype dtype{};
  Layout layout = Layout::separate();              // where the op has one
  Activation activation = Activation::identity();  // where the op has one
  std::int64_t tokens = 0;
  std::int64_t hidden_size = 0;  // ignored by act_and_mul
  std::int64_t intermediate_size = 0;
  Values values = Values::zero_mean;
  Padding padding{};
  std::int64_t shift = 0;  // elements by which every pointer lies behind a 256-byte boundary
  Biases biases{};         // those of them that the op has; of a packed layout gate and up come together
  bool batch_invariant = false;
};

inline constexpr Biases every_bias{.gate = true, .up = true, .down = true};
Biases biases_of(const Spec& spec);  // as a description has them
std::string describe(const Spec& spec);

// One op on fresh data: the operands in guarded memory, as a spec wants them.
class Experiment {
 public:
  Experiment(const Spec& spec, Random& random, Memory& memory = device_memory());

  const Spec& spec() const { return spec_; }
  std::int64_t columns() const;  // of the output
  Desc desc(const std::string& implementation = {}) const;
  Args host_args();  // the images, for gatefold_check

  // Runs on a poisoned output and workspace, and expects that nothing but the output's elements (and the workspace)
  // changed. False if the implementation can't take the description; the reference takes every one.
  bool run(const std::string& implementation = {});
  void run(const Plan& plan);

  gatefold_error_report check(gatefold_data data, double* truth = nullptr);

  // Elements by their meaning, wherever the layout has put them.
  double x(std::int64_t t, std::int64_t k) const { return x_->get(t, k); }
  double gate_weight(std::int64_t f, std::int64_t k) const { return gate_->get(positions_.gate[f], k); }
  double up_weight(std::int64_t f, std::int64_t k) const { return up_tensor().get(positions_.up[f], k); }
  double gate_operand(std::int64_t t, std::int64_t f) const { return gate_->get(t, positions_.gate[f]); }
  double up_operand(std::int64_t t, std::int64_t f) const { return up_tensor().get(t, positions_.up[f]); }
  double down(std::int64_t d, std::int64_t f) const { return down_->get(d, f); }
  double gate_bias(std::int64_t f) const { return gate_bias_ ? gate_bias_->get(0, positions_.gate[f]) : 0.0; }
  double up_bias(std::int64_t f) const { return up_bias_tensor() ? up_bias_tensor()->get(0, positions_.up[f]) : 0.0; }
  double down_bias(std::int64_t d) const { return down_bias_ ? down_bias_->get(0, d) : 0.0; }
  double out(std::int64_t t, std::int64_t c) const { return out_->get(t, c); }

  void set_gate_operand(std::int64_t t, std::int64_t f, double value) { gate_->set(t, positions_.gate[f], value); }
  void set_up_operand(std::int64_t t, std::int64_t f, double value) {
    (up_ ? *up_ : *gate_).set(t, positions_.up[f], value);
  }
  void set_gate_weight(std::int64_t f, std::int64_t k, double value) { gate_->set(positions_.gate[f], k, value); }
  void set_up_weight(std::int64_t f, std::int64_t k, double value) {
    (up_ ? *up_ : *gate_).set(positions_.up[f], k, value);
  }
  void set_gate_bias(std::int64_t f, double value) { gate_bias_->set(0, positions_.gate[f], value); }
  void set_up_bias(std::int64_t f, double value) {
    (up_bias_ ? *up_bias_ : *gate_bias_).set(0, positions_.up[f], value);
  }
  void set_x(std::int64_t t, std::int64_t k, double value) { x_->set(t, k, value); }
  void set_down(std::int64_t d, std::int64_t f, double value) { down_->set(d, f, value); }
  void set_out(std::int64_t t, std::int64_t c, double value) { out_->set(t, c, value); }

  // The bytes of the output's elements, for comparing two runs.
  std::vector<std::byte> out_bytes() const;

  // What a run of the `tokens` from `first` on alone makes of the data of the last run: the bytes of their rows.
  std::vector<std::byte> run_batch(const Plan& plan, std::int64_t first, std::int64_t tokens) const;

  Args device_args(Tensor& out, Tensor& workspace) const;
  Tensor make_out() const;
  Tensor make_workspace(const Plan& plan) const;

 private:
  std::vector<std::byte> elements_of(const Tensor& tensor, std::int64_t rows) const;
  const Tensor& up_tensor() const { return up_ ? *up_ : *gate_; }
  bool packed() const;
  const std::optional<Tensor>& up_bias_tensor() const { return packed() ? gate_bias_ : up_bias_; }
  Tensor make(const Shape& shape) const;
  void make_tensors();
  void make_biases();
  void fill(Random& random);
  void fill_biases(Random& random);

  Spec spec_;
  Memory* memory_;
  Positions positions_;
  std::optional<Tensor> x_, gate_, up_, down_, out_;
  std::optional<Tensor> gate_bias_, up_bias_, down_bias_;  // of a packed layout the first holds both halves
};

}  // namespace gatefold::test
