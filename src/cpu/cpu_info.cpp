#include "cpu/cpu_info.hpp"

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "cpu/threads.hpp"

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

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

  Registers(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx); }
};

constexpr bool all_of(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

// Which registers the operating system saves and restores.
unsigned saved_state() {
  constexpr unsigned osxsave = 1U << 27;
  if (!all_of(Registers(1, 0).ecx, osxsave)) return 0;
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Linux gives a process the matrix unit's registers, 8 KiB for each thread, when it asks.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long request_permission = 0x1023;
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

Features find_features() {
  constexpr unsigned ymm = 0x6;
  constexpr unsigned zmm = 0xe6;
  constexpr unsigned fma_and_f16c = 1U << 12 | 1U << 29;
  constexpr unsigned avx2 = 1U << 5;
  constexpr unsigned avx512_f_dq_bw_vl = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31;
  constexpr unsigned avx512_bf16 = 1U << 5;
  constexpr unsigned tiles = 0x60000;
  constexpr unsigned amx_tile_and_bf16 = 1U << 24 | 1U << 22;
  const unsigned state = saved_state();
  const Registers extended(7, 0);
  Features found;
  found.avx2 = all_of(state, ymm) && all_of(extended.ebx, avx2) && all_of(Registers(1, 0).ecx, fma_and_f16c);
  found.avx512 = found.avx2 && all_of(state, zmm) && all_of(extended.ebx, avx512_f_dq_bw_vl);
  found.avx512_bf16 = found.avx512 && extended.eax >= 1 && all_of(Registers(7, 1).eax, avx512_bf16);
  found.amx_bf16 =
      found.avx512_bf16 && all_of(state, tiles) && all_of(extended.edx, amx_tile_and_bf16) && may_use_tiles();
  return found;
}

#else

Features find_features() { return {}; }

#endif

}  // namespace

const Features& features() {
  static const Features found = find_features();
  return found;
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
  info.threads = thread_limit();
  info.memory_bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  return info;
}

}  // namespace gatefold::cpu
