#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/way.hpp"

namespace gatefold::cli {

// How right a way's result is.
struct Accuracy {
  std::optional<double> relative_l2;    // of the result, from the block's inputs in double precision
  std::optional<double> h_bound_ratio;  // of h to gate_up's bound, which allows for one rounding only
  double max_bound_ratio = 0.0;         // worst of the way's own ops, each from its inputs as they are stored
  std::int64_t violations = 0;          // elements of those ops that are beyond their bounds
  std::string failure;                  // "" if all is well, else what is wrong, in one line

  bool passed() const { return failure.empty(); }
};

// Checks ways on the host, and remembers what it has checked: ways share stages, and a stage's output is the same from
// run to run.
class Checker {
 public:
  Checker(RowSample rows, gatefold_data x) : rows_(rows), x_(x) {}

  // h, gate and up are what `way` left there. `fused` is the block's gate_up, whose check knows the truth of h.
  Accuracy check_h(const std::string& name, const Way& way, const Stage& fused, const Tensors& host);
  // y, from the h that is there.
  Accuracy check_y(const std::string& name, const Way& way, const Tensors& host);
  // y, which `way`, mlp as one op, has made of x.
  Accuracy check_mlp_y(const std::string& name, const Way& way, const Block& block, const Tensors& host);

 private:
  void check_stages(const std::string& name, const Way& way, const Tensors& host, gatefold_data data,
                    Accuracy& accuracy);
  void add(const std::string& name, const Stage& stage, const gatefold_error_report& report, Accuracy& accuracy) const;

  RowSample rows_;
  gatefold_data x_;
  std::map<const Stage*, std::optional<gatefold_error_report>> known_;
};

}  // namespace gatefold::cli
