#include "cpu/cpu_info.hpp"

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "cpu/threads.hpp"

namespace gatefold::cpu {
namespace {

// As /proc/cpuinfo calls it.
std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(": ");
    return colon == std::string::npos ? "CPU" : line.substr(colon + 2);
  }
  return "CPU";
}

std::string names_of(const Features& features) {
  std::string names;
  for (const auto& [there, name] : {std::pair{features.avx2, "avx2 fma f16c"},
                                    {features.avx512, "avx512f"},
                                    {features.avx512_bf16, "avx512_bf16"},
                                    {features.avx512_fp16, "avx512_fp16"},
                                    {features.amx_bf16, "amx_bf16"},
                                    {features.neon, "neon"}}) {
    if (there) names += (names.empty() ? "" : " ") + std::string(name);
  }
  return names;
}

void copy_text(const std::string& text, char* out, std::size_t size) { std::snprintf(out, size, "%s", text.c_str()); }

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

  Registers(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx); }
};

constexpr bool all_of(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

bool is_intel() {
  const Registers vendor(0, 0);
  const unsigned name[]{vendor.ebx, vendor.edx, vendor.ecx};
  return std::memcmp(name, "GenuineIntel", sizeof name) == 0;
}

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
  constexpr unsigned avx512_fp16 = 1U << 23;
  constexpr unsigned tiles = 0x60000;
  constexpr unsigned amx_tile_and_bf16 = 1U << 24 | 1U << 22;
  const unsigned state = saved_state();
  const Registers extended(7, 0);
  Features found;
  found.avx2 = all_of(state, ymm) && all_of(extended.ebx, avx2) && all_of(Registers(1, 0).ecx, fma_and_f16c);
  found.avx512 = found.avx2 && all_of(state, zmm) && all_of(extended.ebx, avx512_f_dq_bw_vl);
  found.avx512_bf16 = found.avx512 && extended.eax >= 1 && all_of(Registers(7, 1).eax, avx512_bf16);
  found.slow_avx512_bf16 = found.avx512_bf16 && is_intel();
  found.avx512_fp16 = found.avx512 && all_of(extended.edx, avx512_fp16);
  found.amx_bf16 =
      found.avx512_bf16 && all_of(state, tiles) && all_of(extended.edx, amx_tile_and_bf16) && may_use_tiles();
  return found;
}

#elif defined(__aarch64__)

Features find_features() { return {.neon = true}; }

#else

Features find_features() { return {}; }

#endif

}  // namespace

const Features& features() {
  static const Features found = find_features();
  return found;
}

Caches core_caches() {
  Caches found;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  found.first_level = std::max(sysconf(_SC_LEVEL1_DCACHE_SIZE), 0L);
#endif
#ifdef _SC_LEVEL2_CACHE_SIZE
  found.second_level = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 0L);
#endif
  return found;
}

gatefold_device_info device_info() {
  gatefold_device_info info{};
  copy_text(model_name(), info.name, sizeof info.name);
  copy_text(names_of(features()), info.features, sizeof info.features);
  info.threads = thread_limit();
  info.memory_bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  return info;
}

}  // namespace gatefold::cpu
