#include "cli/cpu_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace gatefold::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t unknown_cache = std::size_t{32} << 20;

std::string line_of(const fs::path& file) {
  std::string line;
  std::ifstream(file) >> line;
  return line;
}

// "max", and whatever else is no number, is no limit.
std::size_t number_of(const fs::path& file) {
  std::size_t number = 0;
  return std::ifstream(file) >> number ? number : std::numeric_limits<std::size_t>::max();
}

// "32768K"
std::size_t cache_size(const fs::path& cache) {
  std::ifstream file(cache / "size");
  std::size_t number = 0;
  char unit = ' ';
  file >> number >> unit;
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

// The kernel keeps a group's files in its path and limits those above it too.
std::size_t left_in_groups() {
  constexpr const char* root = "/sys/fs/cgroup";
  std::size_t left = std::numeric_limits<std::size_t>::max();
  const auto look_at = [&left](const fs::path& limit_file, const fs::path& use_file) {
    const std::size_t limit = number_of(limit_file);
    if (limit == std::numeric_limits<std::size_t>::max()) return;
    const std::size_t used = number_of(use_file);
    left = std::min(left, used < limit ? limit - used : 0);
  };
  look_at(fs::path(root) / "memory" / "memory.limit_in_bytes", fs::path(root) / "memory" / "memory.usage_in_bytes");
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  std::string own = "/";
  while (std::getline(groups, line)) {
    if (line.starts_with("0::")) own = line.substr(3);
  }
  for (fs::path group = own;; group = group.parent_path()) {
    const fs::path folder = fs::path(root) / group.relative_path();
    look_at(folder / "memory.max", folder / "memory.current");
    if (group == group.parent_path()) return left;
  }
}

}  // namespace

std::size_t last_level_cache_bytes() {
  std::map<std::pair<int, std::string>, std::size_t> sizes;  // of each level and the processors that share one
  std::error_code error;
  const fs::directory_iterator processors("/sys/devices/system/cpu", error);
  for (const fs::directory_entry& processor : processors) {
    for (const fs::directory_entry& cache : fs::directory_iterator(processor.path() / "cache", error)) {
      std::ifstream file(cache.path() / "level");
      if (int level = 0; file >> level)
        sizes[{level, line_of(cache.path() / "shared_cpu_list")}] = cache_size(cache.path());
    }
  }
  std::size_t bytes = 0;
  for (const auto& [where, size] : sizes) {
    if (where.first == sizes.rbegin()->first.first) bytes += size;
  }
  if (bytes > 0) return bytes;
  // Of a virtual machine the C library may count caches that its processors don't reach.
  const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return level3 > 0 ? static_cast<std::size_t>(level3) : unknown_cache;
}

std::size_t available_memory_bytes() {
  std::size_t available =
      static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  std::ifstream file("/proc/meminfo");
  for (std::string name, rest; file >> name && std::getline(file, rest);) {
    if (name == "MemAvailable:") available = std::stoull(rest) << 10;  // kB
  }
  return std::min(available, left_in_groups());
}

}  // namespace gatefold::cli
