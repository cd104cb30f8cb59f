#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "cli/timing.hpp"
#include "cli/way.hpp"

namespace gatefold::cli {

// What this device can do at best, measured here and now, and how near to it rows come.
//
//          bytes                                       operations
//   CPU    a buffer read by all threads                products of each instruction set, from the first-level cache
//   CUDA   a large copy, read and written              the library's product of large matrices of the element type
class Roofline {
 public:
  Roofline(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing);

  // Of the ways that will be measured. Throws checkpoint::InputError where a way's peak can't be measured.
  void expect(const Way& way);

  // The better of all calls counts: a machine's speed drifts, so it is called before the rows are measured and after.
  void measure();

  // Bytes, flops, intensity, and on a CPU the unit: the instruction set of the products, null where nobody knows.
  void describe(Json& row, const Way& way) const;

  // To a described row, once everything is measured: what bounds it, the time at the bound, the fractions reached.
  void compare(Json& row) const;

  void add_to(Json& context) const;
  std::vector<Column> columns() const;
  std::string note() const;

 private:
  bool by_unit() const { return backend_.device() == GATEFOLD_DEVICE_CPU; }
  std::string unit_of(const Way& way) const;
  double peak_of(const Json& row) const;  // 0: nobody knows

  Backend& backend_;
  gatefold_dtype dtype_;
  TimingOptions timing_;
  std::set<std::string> units_;
  double bytes_per_second_ = 0.0;
  double flops_per_second_ = 0.0;             // of a device whose peak is not counted by unit
  std::map<std::string, double> unit_flops_;  // per second
};

}  // namespace gatefold::cli
