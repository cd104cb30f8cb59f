#include "cpu/cpu_info.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace gatefold::cpu {
namespace {

// The value of the first line "key : value" of /proc/cpuinfo, or "".
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return {};
}

bool has_flag(const std::string& flags, const std::string& flag) {
  return (" " + flags + " ").find(" " + flag + " ") != std::string::npos;
}

void copy_text(const std::string& text, char* out, std::size_t size) { std::snprintf(out, size, "%s", text.c_str()); }

}  // namespace

bool has_native_bf16() {
  static const bool native = has_flag(cpuinfo("flags"), "avx512_bf16");
  return native;
}

gatefold_device_info device_info() {
  gatefold_device_info info{};
  const std::string name = cpuinfo("model name");
  copy_text(name.empty() ? "CPU" : name, info.name, sizeof info.name);
  const std::string flags = cpuinfo("flags");
  std::string features;
  for (const char* flag : {"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16"}) {
    if (has_flag(flags, flag)) features += (features.empty() ? "" : " ") + std::string(flag);
  }
  copy_text(features, info.features, sizeof info.features);
  info.threads = static_cast<int>(std::thread::hardware_concurrency());
  info.memory_bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  return info;
}

}  // namespace gatefold::cpu
