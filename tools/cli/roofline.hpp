#pragma once

#include "cli/report.hpp"
#include "cli/timing.hpp"
#include "cli/way.hpp"

namespace gatefold::cli {

// What this device can do at best, measured here and now.
struct Peaks {
  double bytes_per_second = 0.0;  // of a large copy, read and written
  double flops_per_second = 0.0;  // of the library's product of large matrices of this type
};
Peaks measure_peaks(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing);

// Adds bytes, flops, intensity, what bounds the way, the time at the bound and the fraction of it that was reached.
void add_roofline(Json& row, const Cost& cost, const Peaks& peaks);

}  // namespace gatefold::cli
