#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "cli/timing.hpp"
#include "cli/way.hpp"
#include "peaks/measure.hpp"

namespace gatefold::cli {

// What this device can do at best, measured here and now, and how near to it rows come.
//
//          bytes                                       operations
//   CPU    a buffer read by all threads                products of each instruction set, from the first-level cache
//   CUDA   a large copy, read and written              the library's product of large matrices of the element type
//
// On a CPU they are measured by turns with the ways of each cell: within seconds a virtual machine's memory may read
// half as fast or twice as fast as before.
class Roofline {
 public:
  Roofline(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing);

  // Of the ways that will be measured. Throws checkpoint::InputError where a way's peak can't be measured.
  void expect(const Way& way);

  // Before the rows are measured and after: of a GPU's peaks the better ones count.
  void measure();

  // To be timed in the rounds of a cell, behind its ways; after measure().
  std::vector<Participant> participants() const;

  // Bytes, flops, intensity. On a CPU as well the unit, that is the instruction set of the products, null where nobody
  // knows, and what compare() adds elsewhere: by the samples of the way and of the participants above.
  void describe(Json& row, const Way& way, const Samples& samples, std::span<const Samples> peaks);

  // To a described row, once everything is measured: what bounds it, the time at the bound, the fractions reached.
  void compare(Json& row) const;

  void add_to(Json& context) const;
  std::vector<Column> columns() const;
  std::string note() const;

 private:
  // A unit's products, whose operands are kept.
  struct Unit {
    DeviceBuffer operands;
    peaks::Work work;
  };

  bool by_unit() const { return backend_.device() == GATEFOLD_DEVICE_CPU; }
  std::string unit_of(const Way& way) const;
  void prepare();
  void hold_against(Json& row, const Samples& samples, const Samples& byte, const Samples* flop) const;

  Backend& backend_;
  gatefold_dtype dtype_;
  TimingOptions timing_;
  std::set<std::string> units_;
  double bytes_per_second_ = 0.0;             // the best measured
  double flops_per_second_ = 0.0;             // of a device whose peak is not counted by unit
  std::map<std::string, double> unit_flops_;  // per second
  DeviceBuffer read_;
  std::vector<peaks::Work> readings_;  // of it by several loops, of which the fastest of a round counts
  std::map<std::string, Unit> products_;
};

}  // namespace gatefold::cli
