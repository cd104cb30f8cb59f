#pragma once

#include <optional>
#include <string>
#include <vector>

// What Nsight Compute measured of a step's kernels, from the CSV that it exports:
//
//   ncu --csv --page raw --log-file FILE --cache-control none --metrics dram__bytes_read.sum,... gatefold swap-ffn
//   trace ...
//
// With --replay-mode app-range it is of whole steps, which run as they do without ncu: one after the other, cooperative
// kernels too, which ncu cannot launch alone.
namespace gatefold::cli {

// One launch, or several put together. Metrics that the file has not are NaN.
struct KernelProfile {
  std::string name;
  double seconds = 0.0;            // gpu__time_duration.sum
  double read_bytes = 0.0;         // dram__bytes_read.sum
  double written_bytes = 0.0;      // dram__bytes_write.sum
  double memory_share = 0.0;       // of the DRAM's bandwidth: dram__throughput.avg.pct_of_peak_sustained_elapsed
  double tensor_core_share = 0.0;  // sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active

  // Bytes and seconds add up, shares are weighted by the seconds.
  void add(const KernelProfile& other);
};

// The launches in their order. Throws checkpoint::InputError where the file is not such a CSV.
std::vector<KernelProfile> read_ncu_csv(const std::string& file);

struct StepProfiles {
  KernelProfile fused, unfused;
};

// Of a file of ranges, the two steps that `swap-ffn trace` marks; none of a file of kernels.
std::optional<StepProfiles> profile_of_steps(const std::vector<KernelProfile>& kernels, const std::string& file);

// What is launched for one pass of a step, in the order of the step.
struct PassLaunch {
  std::string pass;
  bool product = false;
};

struct PassProfile {
  std::string pass;
  int kernels = 0;
  KernelProfile sum;
};

// The last whole step of each kind in a file, pass by pass; empty where it holds none.
//
// The fused step's kernels are told by their names, from start_kernel to delta_kernel. Of the products between two
// others the first are gate_up's; a product may be several launches.
std::vector<PassProfile> profile_of_fused(const std::vector<KernelProfile>& kernels, const std::string& file);

// The unfused step, the last in the file, is told by its order: `launches`, of which a product is one kernel of another
// library's or several, and anything else one of this tool's.
std::vector<PassProfile> profile_of_unfused(const std::vector<KernelProfile>& kernels,
                                            const std::vector<PassLaunch>& launches, const std::string& file);

}  // namespace gatefold::cli
