#include "cli/accuracy.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cli/mlp_check.hpp"

namespace gatefold::cli {

void Checker::check_stages(const std::string& name, const Way& way, const Tensors& host, gatefold_data data,
                           Accuracy& accuracy) {
  for (const StagePtr& stage : way.stages) {
    auto [entry, is_new] = known_.try_emplace(stage.get());
    if (is_new) entry->second = stage->check(host, rows_, data);
    if (entry->second) add(name, *stage, *entry->second, accuracy);
  }
}

void Checker::add(const std::string& name, const Stage& stage, const gatefold_error_report& report,
                  Accuracy& accuracy) const {
  accuracy.max_bound_ratio = std::max(accuracy.max_bound_ratio, report.max_bound_ratio);
  accuracy.violations += report.violations;
  if (report.violations == 0) return;
  accuracy.failure = fmt::format(
      "check failed: {} ({}): {} elements of the {} rows checked are beyond the bound, the worst {:.3g} x at row {}, "
      "column {}",
      name, stage.implementation(), report.violations, rows_.count, report.max_bound_ratio,
      rows_.first + report.worst_row * rows_.stride, report.worst_column);
}

Accuracy Checker::check_h(const std::string& name, const Way& way, const Stage& fused, const Tensors& host) {
  Accuracy accuracy;
  const auto truth = fused.check(host, rows_, x_);
  accuracy.relative_l2 = truth->relative_l2;
  accuracy.h_bound_ratio = truth->max_bound_ratio;
  if (way.stages.back().get() == &fused) known_[&fused] = truth;
  check_stages(name, way, host, x_, accuracy);
  return accuracy;
}

// h is not zero-mean: most activations have a sign.
Accuracy Checker::check_y(const std::string& name, const Way& way, const Tensors& host) {
  Accuracy accuracy;
  check_stages(name, way, host, GATEFOLD_DATA_ANY, accuracy);
  if (const auto& report = known_[way.stages.back().get()]) accuracy.relative_l2 = report->relative_l2;
  return accuracy;
}

Accuracy Checker::check_mlp_y(const std::string& name, const Way& way, const Block& block, const Tensors& host) {
  Accuracy accuracy;
  const gatefold_error_report report = check_mlp(block, host, rows_, x_);
  add(name, *way.stages.back(), report, accuracy);
  accuracy.relative_l2 = report.relative_l2;
  return accuracy;
}

}  // namespace gatefold::cli
